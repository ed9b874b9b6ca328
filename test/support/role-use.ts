/** Which permissions of a role nobody used. */
import { type Permission, permissionsOf, type RoleDatastore } from "../../scripts/deploy/roles.ts";
import type { AuditedRequest } from "./kube-audit.ts";

export function unusedPermissions(role: RoleDatastore, asked: readonly AuditedRequest[]): readonly Permission[] {
  const isUsed = ({ verb, resource, group }: Permission) =>
    asked.some(
      (request) =>
        (request.verb === verb || (verb === "list" && isStreamedList(request))) &&
        request.resource === resource &&
        request.uri.startsWith(group === "" ? "/api/v1/" : `/apis/${group}/`),
    );
  return permissionsOf(role).filter((permission) => !isUsed(permission));
}

/** A list as the beginning of a watch: servers that cannot do that need the permission to list. */
export function isStreamedList({ verb, uri }: AuditedRequest): boolean {
  return verb === "watch" && uri.includes("sendInitialEvents=true");
}

export function isForbidden({ status }: AuditedRequest): boolean {
  return status === 403;
}
