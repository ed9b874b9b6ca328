/** A test run that is killed: starts a server with all its programs, prints what it made, and waits. */
import { startApiServer } from "../support/kube-apiserver.ts";

const server = await startApiServer({ with: ["controller-manager", "scheduler"] });
console.log(JSON.stringify({ directory: server.directory, etcd: server.etcd.pid, apiServer: server.apiServer.pid }));
setInterval(() => {}, 60_000);
