"""Storms: the real brokers, links and clients in one process, on a clock that jumps, while brokers
crash and connections break in the middle of moves.  One seed is one storm, and says what it broke.

    clock.py      time that passes only when nobody has anything to do
    people.py     clients that publish, subscribe, move, and write down what they hear
    faults.py     what goes wrong, and when
    storm.py      one storm, from seed to verdict
    checking.py   what must be true when all is quiet again
"""
