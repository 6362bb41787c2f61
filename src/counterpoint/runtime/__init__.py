"""Play a team of agents on a task: roles, topologies, protocols, systems. Importing this loads none."""
