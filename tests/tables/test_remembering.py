from mate_tf.tables.table import LARGE, MOST, remember


def test_of_the_large_only_the_latest_is_held_and_of_the_small_so_many():
    made = []

    def make(size):
        made.append(size)
        return [size]

    remembered = remember(make, size_of=lambda key, value: value[0], count=2)

    def makes(*sizes):
        made.clear()
        assert [remembered(size) for size in sizes] == [[size] for size in sizes]
        return made

    assert makes(1, LARGE, LARGE, 2, 1) == [1, LARGE, 2, 1]  # LARGE itself is small
    assert makes(1, 2) == []
    assert makes(LARGE + 1, 1, LARGE + 1, LARGE + 1) == [LARGE + 1]
    assert makes(LARGE + 2, LARGE + 1, LARGE + 1) == [LARGE + 2, LARGE + 1]
    assert makes(1, 2, 1, 3, 1, 2) == [3, 2]  # the one asked for last goes last


def test_the_small_ones_are_held_to_a_size_together():
    made = []

    def make(key):
        made.append(key)
        return key

    number = MOST // LARGE
    remembered = remember(make, size_of=lambda *_: LARGE, count=2 * number)
    for key in range(number):
        remembered(key)
    remembered(0)
    assert len(made) == number
    remembered(number)  # takes the place of 1, which was asked for longest ago
    remembered(0)
    assert len(made) == number + 1
    remembered(1)
    assert made[-1] == 1
