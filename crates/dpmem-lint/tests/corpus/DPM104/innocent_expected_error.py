import dpctl
import dpnp
import pytest


def test_refuses():
    a = dpnp.ones(3, sycl_queue=dpctl.SyclQueue())
    b = dpnp.ones(3, sycl_queue=dpctl.SyclQueue())
    with pytest.raises(ValueError):
        a + b
    try:
        dpnp.add(a, b)
    except Exception as error:
        print(error)
