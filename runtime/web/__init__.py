"""The web: jobs to be seen and steered by REST as Flink's, and by a page; an ASGI callable without a framework.

It asks a JobManager by the messages that clients have (`jobs.Jobs`), reads the history of ended jobs, and makes JSON of
the answers: that part is pure functions of JobView and the like (`flink_*`, `page_view`, `top`). Not at home here: how
a JobManager is reached (`clusters`), what is measured (`actors/jobs`), what decides.
"""
