def value():
    import unittest

    raise unittest.SkipTest('x')
