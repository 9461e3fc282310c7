"""crowdveil: truth from crowds, without seeing anyone's answers."""
