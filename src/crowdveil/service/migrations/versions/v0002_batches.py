"""Table of the batches of a relay."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "batch",
        sa.Column("campaign", sa.LargeBinary, sa.ForeignKey("campaign.hash"), primary_key=True),
        sa.Column("sha256", sa.LargeBinary, primary_key=True),
        sa.Column("document", sa.LargeBinary, nullable=False),
        sa.Column("delivered", sa.Boolean, nullable=False),
        sqlite_with_rowid=False,
    )
