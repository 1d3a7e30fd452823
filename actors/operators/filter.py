from .operator import Operator
class Filter(Operator):
    takes="any"
    def __init__(self, function): self.function = function
    def process_batch(self, batch, out):
        import pyarrow as pa
        if isinstance(batch, pa.RecordBatch):
            out.emit(batch.filter(self.function)) 
        else: out.emit([r for r in batch if self.function(r)])
