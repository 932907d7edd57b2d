"""Recomputes the sums of a node's ledger, which follow every change."""

from numalign.placement.ledger.nodeledger import NOT_COUNTED, ChargeSums, NodeLedger


def recomputed(ledger: NodeLedger) -> ChargeSums:
    sums = ChargeSums(explained=None if ledger.sums.explained is None else {})
    for record in ledger.records.values():
        sums.change(record.uid, NOT_COUNTED, (record.computed_share(), record.is_pending))
    return sums
