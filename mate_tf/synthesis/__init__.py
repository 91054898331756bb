"""Tables become questions and statements to train on."""
