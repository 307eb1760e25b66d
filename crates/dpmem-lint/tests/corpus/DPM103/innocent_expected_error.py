import dpctl
import pytest


def test_bad_filter():
    with pytest.raises(ValueError):
        dpctl.SyclDevice("no such device")


def find(name):
    try:
        return dpctl.SyclDevice("unknown:thing")
    except dpctl.SyclDeviceCreationError:
        return None
