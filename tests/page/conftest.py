"""A test in a browser is tried twice: on busy cores a page is now and then not drawn to its end."""

from _pytest.runner import runtestprotocol


def pytest_runtest_protocol(item, nextitem):
    if item.path.name != "test_browser.py":
        return None
    hook = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    if any(report.failed for report in reports):
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
