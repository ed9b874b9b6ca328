/** Why there is no connection to the node agent, and what to look at. Pure. */
import { identity } from "../../identity.ts";

/** `code`: of the error of connect(2), such as `ENOENT`. */
export function connectProblem(code: string): string {
  switch (code) {
    case "ENOENT":
      return `there is no such socket: is the volume ${identity.csiDriver} mounted, and does ${identity.nodeAgent} run on this node?`;
    case "EACCES":
      return "the volume's `user` is not the user of this process";
    case "ECONNREFUSED":
      return "the node agent does not run";
    default:
      return `cannot connect: ${code}`;
  }
}
