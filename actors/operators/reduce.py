from .operator import KeyedOperator
class KeyedReduce(KeyedOperator):
    def __init__(self, function): self.function = function
