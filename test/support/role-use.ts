/** Which permissions of a role nobody used. */
import { type Permission, permissionsOf, type RoleDatastore } from "../../scripts/deploy/roles.ts";
import type { AuditedRequest } from "./kube-audit.ts";

export function unusedPermissions(role: RoleDatastore, asked: readonly AuditedRequest[]): readonly Permission[] {
  const isUsed = ({ verb, resource, group }: Permission) =>
    asked.some(
      (request) =>
        request.verb === verb &&
        request.resource === resource &&
        request.uri.startsWith(group === "" ? "/api/v1/" : `/apis/${group}/`),
    );
  return permissionsOf(role).filter((permission) => !isUsed(permission));
}

export function isForbidden({ status }: AuditedRequest): boolean {
  return status === 403;
}
