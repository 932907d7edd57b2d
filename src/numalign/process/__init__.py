"""What every long-running process shares: logs, metrics, tasks, certificates, gRPC and a small HTTP server.

The scheduler, the agent, the embedded cluster and the lab use it. It does not know pods or nodes."""
