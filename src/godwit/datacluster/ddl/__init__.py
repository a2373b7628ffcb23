"""The data definition language: statements that create and drop datasets, feeds and channels.

statements.py  the statements as values, and the grammar
parsing.py     the text of a statement becomes a value
splitting.py   a text with several statements becomes one text for each
"""
