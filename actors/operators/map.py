from .operator import Operator
class Map(Operator):
    def __init__(self, function): self.function = function
    def process_batch(self, batch, out): out.emit([self.function(r) for r in batch])
