"""A fleet of six made-up nodes, as a Puppet Server would tell PuppetDB of it.

web-1, web-2 and web-3 serve pages behind lb-1; db-1 fails, and gone-1 has not
reported for five hours. web-1 has a history of twelve runs, one an hour.
Everything is told by commands in PuppetDB's wire formats.
"""

from datetime import datetime, timedelta, timezone

NOW = datetime.now(timezone.utc).replace(microsecond=0)
PRODUCER = "puppet.fleet.test"
VERSION = "1795287300"

# name, environment, role, processors, status of the last run, hours since it
NODES = [
    ("db-1.fleet.test", "production", "db", 16, "failed", 0),
    ("gone-1.fleet.test", "staging", "web", 2, "unchanged", 5),
    ("lb-1.fleet.test", "production", "lb", 4, "noop", 0),
    ("web-1.fleet.test", "production", "web", 2, "changed", 0),
    ("web-2.fleet.test", "production", "web", 4, "unchanged", 0),
    ("web-3.fleet.test", "staging", "web", 8, "changed", 0),
]
RUNS_OF_WEB_1 = 12


def wire_time(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def uuid(number):
    return "00000000-0000-4000-8000-%012d" % number


def facts(name, environment, role, processors, at=NOW):
    return {
        "certname": name,
        "environment": environment,
        "producer": PRODUCER,
        "producer_timestamp": wire_time(at),
        "values": {
            "kernel": "Linux",
            "role": role,
            "is_virtual": role != "db",
            "load": 0.25,
            "processors": {"count": processors, "models": ["Example 1000"] * 2},
            "os": {"family": "Debian", "name": "Debian", "release": {"major": "12"}},
            "trusted": {"authenticated": "remote", "certname": name, "extensions": {"pp_role": role}},
        },
    }


def resource(kind, title, exported=False, tags=(), line=None, **parameters):
    found = {
        "type": kind,
        "title": title,
        "exported": exported,
        "tags": sorted({kind.lower(), *tags}),
        "parameters": parameters,
    }
    if line is not None:
        found.update(file="/etc/puppet/code/site.pp", line=line)
    return found


def edge(relationship, source, target):
    return {
        "relationship": relationship,
        "source": {"type": source["type"], "title": source["title"]},
        "target": {"type": target["type"], "title": target["title"]},
    }


def catalog(number, name, environment, role, at=NOW):
    stage = resource("Stage", "main")
    main = resource("Class", "main")
    role_class = resource("Class", "Role::" + role.capitalize(), tags=["role"])
    package = resource("Package", "nginx", line=3, ensure="installed")
    service = resource("Service", "nginx", tags=["web"], line=4, ensure="running", enable=True, require="Package[nginx]")
    member = resource("Notify", "member " + name, exported=True, tags=["members"], line=5, message="I am " + name)
    return {
        "certname": name,
        "environment": environment,
        "version": VERSION,
        "transaction_uuid": uuid(number),
        "catalog_uuid": uuid(1000 + number),
        "code_id": None,
        "job_id": None,
        "producer": PRODUCER,
        "producer_timestamp": wire_time(at),
        "resources": [stage, main, role_class, package, service, member],
        "edges": [
            edge("contains", stage, main),
            edge("contains", main, role_class),
            edge("contains", role_class, package),
            edge("contains", role_class, service),
            edge("contains", role_class, member),
            edge("required-by", package, service),
        ],
    }


# The events of a run by its outcome: title of the service's class, status, old and new value.
OUTCOMES = {
    "changed": [("ensure", "success", "stopped", "running"), ("enable", "success", "false", "true")],
    "failed": [("ensure", "failure", "stopped", "running"), ("enable", "success", "false", "true")],
    "noop": [("ensure", "noop", "stopped", "running")],
    "unchanged": [],
}


def report(number, name, environment, role, outcome, end=NOW):
    events = [
        {
            "status": status,
            "timestamp": wire_time(end),
            "name": name_of_change,
            "property": name_of_change,
            "old_value": old,
            "new_value": new,
            "message": "%s changed %s to %s" % (name_of_change, old, new),
            "corrective_change": False,
        }
        for name_of_change, status, old, new in OUTCOMES[outcome]
    ]
    service = {
        "skipped": False,
        "timestamp": wire_time(end),
        "resource_type": "Service",
        "resource_title": "nginx",
        "file": "/etc/puppet/code/site.pp",
        "line": 4,
        "containment_path": ["Stage[main]", "Role::" + role.capitalize(), "Service[nginx]"],
        "corrective_change": False,
        "events": events,
    }
    log = {
        "level": "notice",
        "message": "Applied catalog in 0.50 seconds",
        "source": "Puppet",
        "tags": ["notice"],
        "time": wire_time(end),
        "file": None,
        "line": None,
    }
    return {
        "certname": name,
        "environment": environment,
        "puppet_version": "7.23.0",
        "report_format": 12,
        "configuration_version": VERSION,
        "start_time": wire_time(end - timedelta(seconds=30)),
        "end_time": wire_time(end),
        "producer": PRODUCER,
        "producer_timestamp": wire_time(end),
        "transaction_uuid": uuid(number),
        "catalog_uuid": uuid(1000 + number),
        "code_id": None,
        "job_id": None,
        "cached_catalog_status": "not_used",
        "status": "unchanged" if outcome == "noop" else outcome,
        "noop": outcome == "noop",
        "noop_pending": outcome == "noop",
        "corrective_change": False,
        "type": "agent",
        "metrics": [
            {"category": "resources", "name": "total", "value": 6},
            {"category": "time", "name": "total", "value": 0.5},
        ],
        "logs": [log],
        "resources": [service] if events else [],
    }


def commands():
    """All there is to tell, as (command, payload)."""
    for number, (name, environment, role, processors, outcome, hours) in enumerate(NODES):
        at = NOW - timedelta(hours=hours)
        yield "replace facts", facts(name, environment, role, processors, at)
        yield "replace catalog", catalog(number, name, environment, role, at)
        yield "store report", report(number, name, environment, role, outcome, at)
    for hours in range(1, RUNS_OF_WEB_1):
        end = NOW - timedelta(hours=hours)
        yield "store report", report(100 + hours, "web-1.fleet.test", "production", "web", "unchanged", end)


REPORTS = len(NODES) + RUNS_OF_WEB_1 - 1
