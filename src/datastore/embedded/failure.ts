/** Turns the errors of SQLite and of the file system into ours: what is wrong with the datastore's file, and the fix. */
import { PluginError } from "../../errors.ts";
import { quoted } from "../../quote.ts";

interface Description {
  readonly reason: string;
  readonly details: string;
}

const CHECK_PATH = "Check that the path lies on a writable local filesystem";
const CHECK_PERMISSIONS = "Check the permissions of the file and that the filesystem is writable";

/** By the beginning of the error's code. The system's own texts are not used: they repeat the path, and a full disk is an "I/O error". */
const DESCRIPTIONS: Readonly<Record<string, Description>> = {
  SQLITE_BUSY: { reason: "it is locked", details: "Look for a stopped process that has the file open" },
  SQLITE_READONLY: { reason: "it cannot be written", details: CHECK_PERMISSIONS },
  SQLITE_NOTADB: { reason: "it is not a SQLite database", details: "Choose another file, or move it away" },
  SQLITE_CORRUPT: { reason: "it is damaged", details: "Restore a copy of it, or move it away to start again" },
  SQLITE_IOERR: { reason: "the disk failed", details: "See the kernel's log" },
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
/** SQLite reports a full disk also as one of these. */
const MAYBE_FULL = ["SQLITE_IOERR", "SQLITE_CANTOPEN"];
/** Less than this is no use to anybody: SQLite writes in pages of 4 KiB and its index of the journal in units of 32. */
const SMALLEST_USEFUL_BYTES = 64 * 1024;

/** The failure as the rest of the program knows it. */
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
    const details = "Make room on the filesystem; running containers keep their network";
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
