from .operator import Operator
class FlatMap(Operator):
    def __init__(self, function): self.function = function
    def process_batch(self, batch, out): out.emit([x for r in batch for x in self.function(r)])
