/** Converts errors of SQLite and of the filesystem into ours: what is wrong with the datastore's file, and the fix. */
import { PluginError } from "../../errors.ts";
import { quoted } from "../../quote.ts";

interface Description {
  readonly reason: string;
  readonly details: string;
}

const CHECK_PATH = "Check that the path is on a writable local filesystem";
const CHECK_PERMISSIONS = "Check the permissions of the file and that the filesystem is writable";

/** By the start of the error code. The system's own messages are not used: they repeat the path, and call a full disk an "I/O error". */
const DESCRIPTIONS: Readonly<Record<string, Description>> = {
  SQLITE_BUSY: {
    reason: "it is locked",
    details: "Look for a stopped process that has the file open",
  },
  SQLITE_READONLY: { reason: "it cannot be written", details: CHECK_PERMISSIONS },
  SQLITE_NOTADB: { reason: "it is not a SQLite database", details: "Choose another path, or move the file away" },
  SQLITE_CORRUPT: {
    reason: "it is damaged",
    details: "Restore a backup, or move the file away to start with an empty one",
  },
  SQLITE_IOERR: { reason: "the disk failed", details: "Check the kernel log" },
  SQLITE_CANTOPEN: { reason: "it cannot be opened", details: CHECK_PERMISSIONS },
  EACCES: { reason: "permission denied", details: CHECK_PERMISSIONS },
  EPERM: { reason: "permission denied", details: CHECK_PERMISSIONS },
  EROFS: { reason: "the filesystem is read-only", details: CHECK_PATH },
  ENOTDIR: { reason: "part of its path is not a directory", details: CHECK_PATH },
  EEXIST: { reason: "part of its path is not a directory", details: CHECK_PATH },
  EISDIR: { reason: "it is a directory", details: "Name a file in it" },
  ENAMETOOLONG: { reason: "its path is too long", details: "Choose a shorter path" },
};

const FULL = ["SQLITE_FULL", "ENOSPC", "EDQUOT"];
/** SQLite also reports a full disk as one of these. */
const MAYBE_FULL = ["SQLITE_IOERR", "SQLITE_CANTOPEN"];
/** Less than this is not enough: SQLite writes pages of 4 KiB, and its journal index in units of 32 KiB. */
const SMALLEST_USEFUL_BYTES = 64 * 1024;

/** Returns the failure as a `PluginError`. */
export function convertError(path: string, cause: unknown): PluginError {
  if (cause instanceof PluginError) return cause;
  const { reason, details } = describe(path, codeOf(cause)) ?? { reason: messageOf(cause), details: CHECK_PATH };
  return new PluginError("datastore-unavailable", `Cannot use datastore ${quoted(path)}: ${reason}`, {
    cause,
    details,
  });
}

export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

function describe(path: string, code: string): Description | undefined {
  const begins = (beginning: string) => code.startsWith(beginning);
  if (FULL.some(begins) || (MAYBE_FULL.some(begins) && hasNoSpace(folderOf(path)))) {
    const details = "Free space on the filesystem; running containers keep their network";
    return { reason: `no space left under ${quoted(folderOf(path))}`, details };
  }
  return Object.entries(DESCRIPTIONS).find(([beginning]) => begins(beginning))?.[1];
}

function hasNoSpace(folder: string): boolean {
  // Loaded here because only a failure needs it.
  const { statfsSync }: typeof import("node:fs") = require("node:fs");
  try {
    const { bavail, bsize, files, ffree } = statfsSync(folder);
    return bavail * bsize < SMALLEST_USEFUL_BYTES || (files > 0 && ffree === 0);
  } catch {
    return false;
  }
}

function folderOf(path: string): string {
  const end = path.lastIndexOf("/");
  if (end < 0) return ".";
  return end === 0 ? "/" : path.slice(0, end);
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
