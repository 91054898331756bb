"""Who may attend to whom, and how it is computed: a file for each kind."""
