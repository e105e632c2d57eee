"""Reports to clients and operators besides results: outputs, stories, views of graphs, tasks that cannot run.

Begin with `unschedulable.py` and `story.py`.
May import: state, dispatch.
"""
