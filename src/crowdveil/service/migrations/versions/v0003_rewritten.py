"""No statistics of PostgreSQL on any column, the state of the rewrite, and the number of logouts."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None
_TABLES = ("campaign", "part", "picture", "token", "report", "batch")


def upgrade() -> None:
    """Add the columns; in PostgreSQL delete the statistics, which hold values of rows, and make no new ones."""
    op.add_column("campaign", sa.Column("rewritten", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("campaign", sa.Column("logouts", sa.Integer, nullable=False, server_default="0"))
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    for table in _TABLES:
        for column in sa.inspect(connection).get_columns(table):
            # Only a change of type deletes statistics, here a change to the same type.
            kind = column["type"].compile(connection.dialect)
            for change in (f"TYPE {kind}", "SET STATISTICS 0"):
                op.execute(f"ALTER TABLE {table} ALTER COLUMN {column['name']} {change}")
