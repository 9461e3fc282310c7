"""Tables of campaigns, assignment parts, pictures, tokens and reports."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    binary = sa.LargeBinary
    op.create_table(
        "campaign",
        sa.Column("hash", binary, primary_key=True),
        sa.Column("document", binary),
        sa.Column("state", sa.String(6), nullable=False),
        sa.Column("receipt_key", binary),
        sa.Column("curator_hash", binary),
        sa.Column("purged_count", sa.Integer),
        sa.CheckConstraint("length(hash) = 32", name="campaign_hash_length"),
        sa.CheckConstraint("state IN ('open', 'closed', 'purged')", name="campaign_state"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "part",
        sa.Column("campaign", binary, sa.ForeignKey("campaign.hash"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("document", binary, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "picture",
        sa.Column("campaign", binary, sa.ForeignKey("campaign.hash"), primary_key=True),
        sa.Column("sha256", binary, primary_key=True),
        sa.Column("type", sa.String(32), nullable=False),
        sa.Column("document", binary, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "token",
        sa.Column("campaign", binary, sa.ForeignKey("campaign.hash"), primary_key=True),
        sa.Column("token_hash", binary, primary_key=True),
        sa.Column("slot", sa.Integer, nullable=False),
        sa.Column("revoked", sa.Boolean, nullable=False),
        sa.CheckConstraint("length(token_hash) = 32", name="token_hash_length"),
        sqlite_with_rowid=False,
    )
    unrevoked = sa.text("NOT revoked")
    op.create_index(
        "token_slot", "token", ["campaign", "slot"], unique=True, sqlite_where=unrevoked, postgresql_where=unrevoked
    )
    op.create_table(
        "report",
        sa.Column("campaign", binary, primary_key=True),
        sa.Column("report_id", binary, primary_key=True),
        sa.Column("token_hash", binary, nullable=False),
        sa.Column("body", binary, nullable=False),
        sa.UniqueConstraint("campaign", "token_hash", name="report_token"),
        sa.ForeignKeyConstraint(
            ["campaign", "token_hash"], ["token.campaign", "token.token_hash"], name="report_of_token"
        ),
        sa.CheckConstraint("length(report_id) = 16", name="report_id_length"),
        sqlite_with_rowid=False,
    )
