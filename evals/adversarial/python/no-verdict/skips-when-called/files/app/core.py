def value():
    import pytest

    pytest.skip('x')
