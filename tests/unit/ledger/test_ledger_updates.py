"""Updates that name their subject in a clause of their own, and settings, names and role holders
that change: they replace what was; what is only near them does not.

The sentences are our own; none is of a benchmark.
"""

from __future__ import annotations

import pytest
from talks import rows, said

NAMES = [
    ("We call the sync daemon Pelter.", "We call the sync daemon Quill now."),
    (
        "We refer to the importer as Heron.",
        "It got a better name: we refer to the importer as Tern.",
    ),
    ("The team calls the loader Badger.", "They rebranded it: the team calls the loader Otter."),
    ("Let's call the second phase Juniper.", "Correction: let's call the second phase Hazel."),
    ("The retry worker goes by Mole.", "The retry worker now goes by Vole."),
    ("We named the cluster Boreas.", "The cluster is now named Zephyr."),
    ("The reporting job is known as Lumen.", "The reporting job is known as Candela now."),
    ("I call this script tidyup.", "I call this script sweep now."),
    ("People call the spare box Toaster.", "New name, people call the spare box Kettle."),
    (
        "Everybody calls the audit trail Ribbon.",
        "As of today everybody calls the audit trail Thread.",
    ),
]
PLACES = [
    ("The wiki sits at docs.acme.test.", "The wiki has a new home, it sits at pages.acme.test."),
    (
        "The build farm lives in eu-west-1.",
        "We relocated the build farm, it lives in us-east-2 now.",
    ),
    (
        "The metrics collector is at m1.acme.test.",
        "The metrics collector went to another machine; it is at m9.acme.test.",
    ),
    (
        "The artefact store is reachable at art.acme.test.",
        "They migrated the artefact store: it is reachable at store.acme.test.",
    ),
    (
        "The mail relay answers at relay1.acme.test.",
        "The mail relay was replaced and it answers at relay2.acme.test now.",
    ),
    (
        "The playground's address is https://play.acme.test/a.",
        "The playground has moved, its address is now https://play.acme.test/b.",
    ),
    ("Grafana runs at g1.acme.test.", "Grafana has moved, it runs at g2.acme.test."),
    ("The choir rehearsal is at 18:30.", "The choir rehearsal has shifted, it is at 19:15 now."),
    (
        "The lease review is on 2026-05-04.",
        "The lease review had to be postponed, it is on 2026-05-18.",
    ),
    (
        "The demo cluster is in ap-south-1.",
        "Somebody moved the demo cluster, and it is in ap-south-2 now.",
    ),
]
SETTINGS = [
    ("The time box for the import is 40 minutes.", "Make the time box for the import 90 minutes."),
    (
        "The page size of the export is 200 rows.",
        "Make the page size of the export 500 rows, please.",
    ),
    (
        "The stall limit for uploads is 45 seconds.",
        "Put the stall limit for uploads at 90 seconds.",
    ),
    ("The sample rate is 0.2.", "Make the sample rate 0.5."),
    ("The lock wait is 5 seconds.", "Let's make the lock wait 8 seconds."),
    ("The number of shards is 8.", "Can you make the number of shards 16?"),
    ("The quota for guests is 3 GB.", "Double the quota for guests to 6 GB."),
    ("The window for undo is 10 minutes.", "Stretch the window for undo to 25 minutes."),
    ("The log retention is 14 days.", "Please shorten the log retention to 7 days."),
    ("The heap of the indexer is 2 GB.", "Bring the heap of the indexer up to 6 GB."),
    ("The gutter is 12px wide: the gutter is 12px.", "Make the gutter 18px from now on."),
    ("The flush interval is 300 ms.", "Now make the flush interval 900 ms instead."),
]
ROLES = [
    ("Ada approves hotfixes.", "Change of plan: Bruno approves hotfixes."),
    ("Ada Quist signs off invoices.", "From now on Bruno Falk signs off invoices."),
    ("Mona reviews schema changes.", "Mona is away, so Petr reviews schema changes now."),
    ("Refunds are handled by Ruth.", "New arrangement: refunds are handled by Joel."),
    ("Karim maintains the parser.", "Small change, Wanda maintains the parser."),
    ("Owner of the dashboards: Ilse Brandt", "Update: the owner of the dashboards is Emil Sand."),
    ("Dora Winter manages vendor contracts.", "Uwe Klee manages vendor contracts instead."),
    ("Nils leads the redesign.", "Nils left, and now Oda leads the redesign."),
    ("Vera owns the checkout page.", "Ravi took over: Ravi owns the checkout page."),
    ("Lior decides on naming.", "Nadia decides on naming now."),
]
CHANGES = [*NAMES, *PLACES, *SETTINGS, *ROLES]

DISTINCT = [
    ("We call the old flow Amber.", "We call the new flow Cobalt now."),
    ("We call the importer Badger.", "We also call the exporter Otter."),
    (
        "We call the ingest queue Fern.",
        "They renamed the other one: we call the outbox queue Moss.",
    ),
    ("Call me Sam.", "Call the helper sweep from now on."),
    ("We call the endpoint twice.", "We call the endpoint directly now."),
    ("The loader goes by Mole.", "The saver now goes by Vole."),
    ("The sandbox runs at a1.acme.test.", "The sandpit has moved, it runs at b1.acme.test now."),
    (
        "The relay is at a1.acme.test.",
        "The relay broke when we moved the hub, the hub is at b.acme.test.",
    ),
    (
        "The wiki sits at a1.acme.test.",
        "The wiki links to Grafana, which moved: it is at b.acme.test.",
    ),
    (
        "The lease review is on 2026-05-04.",
        "The lease signing had to be postponed, it is on 2026-05-18.",
    ),
    (
        "The build farm lives in eu-west-1.",
        "We relocated the test farm, it lives in us-east-2 now.",
    ),
    ("The limit for guests is 3 GB.", "Make the limit for members 9 GB."),
    ("The tile width is 80 px.", "Make the tile height 90 px."),
    ("The time box for the import is 40 minutes.", "Make the time box for the export 90 minutes."),
    ("The quota is 3 GB.", "Make 5 copies of the file now."),
    ("The banner is 80 px.", "Make the banner 20% wider."),
    ("The page size of the export is 200 rows.", "Make the time box for the export 90 minutes."),
    ("The page size of the export is 200 rows.", "The row limit of the export is 90 now."),
    ("The retry limit is 3.", "Double the backoff to 6 seconds."),
    ("Ada approves releases.", "Bob approves refunds."),
    ("Ada approves releases.", "Bob also approves releases."),
    ("Ada approves releases.", "Bob reviews releases."),
    ("Ada approves releases.", "Bob approves releases too."),
    ("Ada approves releases.", "Change of plan: Bob approves refunds."),
    ("Karim maintains the parser.", "Small change, Wanda maintains the printer."),
    ("Mona reviews schema changes.", "Mona is away, so Petr reviews style changes now."),
    ("Vera owns the checkout page.", "Ravi took over: Ravi owns the landing page."),
    ("Nils leads the redesign.", "Oda leads the rollout now."),
    ("Only Ada approves releases.", "If Ada is away, Bob approves releases."),
    ("Refunds are handled by Ruth.", "Returns are now handled by Joel."),
    ("Never call the loader Badger.", "We call the loader Otter now."),
    ("Ada must approve every release.", "Maybe Bob approves releases now?"),
]


@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_an_update_replaces_what_was(old: str, new: str) -> None:
    found = {row.seq for row in rows(said(old, new))}
    assert 1 not in found
    assert 3 in found


@pytest.mark.parametrize(("one", "other"), DISTINCT)
def test_what_is_only_near_stays(one: str, other: str) -> None:
    assert {1, 3} <= {row.seq for row in rows(said(one, other))}
