"""Opens sessions on a surface that the user names. The proof of its fitness is read first."""

from __future__ import annotations

from dataclasses import dataclass, replace

import psycopg
from psycopg.conninfo import conninfo_to_dict

from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.postgres import connect, describe
from holdfast.reference_impl.rs4a_replay.fitness import Claim, FitnessGuard
from holdfast.reference_impl.rs4a_replay.opening import Opened
from holdfast.reference_impl.rs4a_replay.postgres_opening import Opening as PostgresOpening
from holdfast.reference_impl.rs4a_replay.postgres_opening import dsn_of
from holdfast.reference_impl.rs4a_replay.service import Use
from holdfast.reference_impl.rs4a_replay.settings import Settings
from holdfast.reference_impl.rs4a_replay.terms import CONTRACT
from holdfast.reference_impl.session import OpenError, OpenRequest, StateWanted
from holdfast.specs import kept_terms


@dataclass(frozen=True, slots=True)
class Opening:
    """Implements `opening.Opening`."""

    def open(self, request: OpenRequest, settings: Settings, patience: Patience) -> Opened:
        """A surface that the user names: used unchanged, and only with a proof that it is fit."""
        dsn = dsn_of(request.config, "writer_dsn")
        if request.state is StateWanted.FRESH:
            raise OpenError(
                "state fresh: a live surface is never made anew; open it as existing, or let "
                "`python -m reference_impl launch` provision a throw-away one and pass the config that it prints"
            )
        config, writer = request.config, str(conninfo_to_dict(dsn).get("user", ""))
        claim = Claim(config.get("fitness"), writer, config.get("surface"))
        try:
            with connect(dsn) as connection:
                FitnessGuard().admit(claim, kept_terms(CONTRACT), connection)
        except psycopg.Error as error:
            # The text of the error may hold the password of the DSN.
            raise OpenError(f"config writer_dsn: {describe(dsn)} cannot be reached: {type(error).__name__}") from None
        return replace(PostgresOpening().connected(request, settings, patience, dsn, dsn), use=Use.LIVE)

    def shut_down(self) -> None:
        """See `opening.Opening`. Nothing of a live surface is removed."""
