"""Migration environment: runs on the connection that the caller gives, in the caller's transaction."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, transactional_ddl=True, transaction_per_migration=False)
context.run_migrations()
