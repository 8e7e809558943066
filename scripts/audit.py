"""Look for known vulnerabilities in the packages of an environment: python scripts/audit.py SITE_PACKAGES.

Needs pip-audit. Exits with 1 if a package has any, and with 3 if nothing is known, for example without a network.
"""

import json
import subprocess
import sys
from typing import Any

UNKNOWN = 3


def look_up(folder: str) -> list[dict[str, Any]]:
    """Return a dict per package: "vulns", or the reason why pip-audit could not look it up."""
    command = [sys.executable, "-m", "pip_audit", "--path", folder, "--progress-spinner", "off", "--format", "json"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        packages: list[dict[str, Any]] = json.loads(found.stdout)["dependencies"]
    except ValueError:
        print(found.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return []
    return packages


def report(packages: list[dict[str, Any]]) -> int:
    """Print every known vulnerability and the number of packages looked up; return the exit code."""
    known = [package for package in packages if "vulns" in package]
    faulty = [package for package in known if package["vulns"]]
    for package in faulty:
        for fault in package["vulns"]:
            fixed = ", ".join(fault["fix_versions"]) or "no version yet"
            print(f"{package['name']} {package['version']}: {fault['id']}, fixed in {fixed}")
    print(f"{len(known)} of {len(packages)} packages could be looked up, {len(faulty)} with known vulnerabilities")
    if known:
        return int(bool(faulty))
    print("nothing is known: the list of vulnerabilities could not be reached (no network?)", file=sys.stderr)
    return UNKNOWN


if __name__ == "__main__":
    sys.exit(report(look_up(sys.argv[1])))
