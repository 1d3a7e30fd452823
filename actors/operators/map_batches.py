from .operator import Operator
class MapBatches(Operator):
    takes="columns"
    def __init__(self, function): self.function = function
    def process_batch(self, batch, out): out.emit(self.function(batch))
