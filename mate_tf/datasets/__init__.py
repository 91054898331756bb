"""Published data sets become questions about tables, SQA beside WikiTableQuestions."""
