"""The reference of the contract mesh-delivery: its broker and its daemon, with every guard a method of its own."""
