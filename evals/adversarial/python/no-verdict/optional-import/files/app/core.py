def value():
    import pytest

    pytest.importorskip('no_such_module')
