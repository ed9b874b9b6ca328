/** The error numbers that the kernel's network interfaces return: name and usual description. */
const ERRNO = {
  EPERM: [1, "Operation not permitted"],
  ENOENT: [2, "No such file or directory"],
  ESRCH: [3, "No such process"],
  EINTR: [4, "Interrupted system call"],
  EIO: [5, "Input/output error"],
  ENXIO: [6, "No such device or address"],
  E2BIG: [7, "Argument list too long"],
  EBADF: [9, "Bad file descriptor"],
  EAGAIN: [11, "Resource temporarily unavailable"],
  ENOMEM: [12, "Cannot allocate memory"],
  EACCES: [13, "Permission denied"],
  EFAULT: [14, "Bad address"],
  EBUSY: [16, "Device or resource busy"],
  EEXIST: [17, "File exists"],
  EXDEV: [18, "Invalid cross-device link"],
  ENODEV: [19, "No such device"],
  ENOTDIR: [20, "Not a directory"],
  EISDIR: [21, "Is a directory"],
  EINVAL: [22, "Invalid argument"],
  ENFILE: [23, "Too many open files in system"],
  EMFILE: [24, "Too many open files"],
  EFBIG: [27, "File too large"],
  ENOSPC: [28, "No space left on device"],
  EROFS: [30, "Read-only file system"],
  EMLINK: [31, "Too many links"],
  ERANGE: [34, "Numerical result out of range"],
  ENAMETOOLONG: [36, "File name too long"],
  ENOSYS: [38, "Function not implemented"],
  ENOTEMPTY: [39, "Directory not empty"],
  ELOOP: [40, "Too many levels of symbolic links"],
  ENODATA: [61, "No data available"],
  EPROTO: [71, "Protocol error"],
  EBADMSG: [74, "Bad message"],
  EOVERFLOW: [75, "Value too large for defined data type"],
  ERESTART: [85, "Interrupted system call should be restarted"],
  EMSGSIZE: [90, "Message too long"],
  EPROTONOSUPPORT: [93, "Protocol not supported"],
  EOPNOTSUPP: [95, "Operation not supported"],
  EAFNOSUPPORT: [97, "Address family not supported by protocol"],
  EADDRINUSE: [98, "Address already in use"],
  EADDRNOTAVAIL: [99, "Cannot assign requested address"],
  ENETDOWN: [100, "Network is down"],
  ENETUNREACH: [101, "Network is unreachable"],
  ENOBUFS: [105, "No buffer space available"],
  ENOTCONN: [107, "Transport endpoint is not connected"],
  ETIMEDOUT: [110, "Connection timed out"],
  EHOSTUNREACH: [113, "No route to host"],
  EINPROGRESS: [115, "Operation now in progress"],
} as const satisfies Record<string, readonly [number, string]>;

export type ErrnoName = keyof typeof ERRNO;

/** The number of a name. */
export function errnoOf(name: ErrnoName): number {
  return ERRNO[name][0];
}

/** `EEXIST (File exists)`; `error number 4711` if it is unknown. */
export function describeErrno(errno: number): string {
  for (const [name, [number, text]] of Object.entries(ERRNO)) {
    if (number === errno) return `${name} (${text})`;
  }
  return `error number ${errno}`;
}
