/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * socket.c - the UNIX socket that Docker finds the driver by: systemd's, or one that is made here.
 */
#include "runtimes/ipam/api.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/text.h"
#include "runtimes/cnirun/directory.h"

#define FIRST_PASSED 3 /* SD_LISTEN_FDS_START */
/* As many as the host allows, as systemd does. Docker repeats for half a minute what finds no room.
 */
#define BACKLOG INT_MAX

static int fill_address(const char *path, struct sockaddr_un *address, struct cni_error *err)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (*path != '/' || strlen(path) >= sizeof(address->sun_path))
		return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
				     "the socket \"%s\" must be an absolute path of less than %zu "
				     "bytes",
				     path, sizeof(address->sun_path));
	memcpy(address->sun_path, path, strlen(path));
	return 0;
}

static int check_passed(int fd, char **path, struct cni_error *err)
{
	struct sockaddr_un address = {0};
	socklen_t length = sizeof(address), size = sizeof(int);
	int listens = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) || !listens ||
	    getsockname(fd, (struct sockaddr *)&address, &length) || address.sun_family != AF_UNIX)
		return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
				     "what the service manager has passed must be a UNIX socket "
				     "that listens");
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	*path = cni_format("%.*s", (int)sizeof(address.sun_path), address.sun_path);
	return fd;
}

int socket_take_passed(char **path, struct cni_error *err)
{
	const char *process = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	bool is_ours = process && count && strtol(process, NULL, 10) == getpid();
	bool is_one = is_ours && !strcmp(count, "1");

	/* Plugins should not inherit them. */
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	if (is_one)
		return check_passed(FIRST_PASSED, path, err);
	if (is_ours)
		cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
			      "the service manager must pass one socket (LISTEN_FDS=1)");
	return -1;
}

/* Whoever may write to a directory of the path could put another socket there. */
static int check_directories(const char *path, struct cni_error *err)
{
	cleanup_free char *directory = or_exit(strndup(path, (size_t)(strrchr(path, '/') - path)));
	cleanup_free char *real = NULL;
	struct stat status;
	char *slash;

	if (*directory && directory_create(directory, err))
		return -1;
	real = realpath(*directory ? directory : "/", NULL);
	while (real && *real) {
		if (stat(real, &status) || (status.st_uid && status.st_uid != geteuid()) ||
		    (status.st_mode & (S_IWGRP | S_IWOTH) && !(status.st_mode & S_ISVTX)))
			return cni_error_set(err, CNI_ERROR_IO,
					     "others than root may write to %s, so the socket "
					     "cannot be there",
					     real);
		slash = strrchr(real, '/');
		*slash = '\0';
	}
	return real ? 0
		    : cni_error_set(err, CNI_ERROR_IO, "no directory %s: %s", directory,
				    strerror(errno));
}

static int connect_to(const struct sockaddr_un *address)
{
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int connected = fd;

	if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)))
		return -1;
	fd = -1;
	return connected;
}

int socket_connect(const char *path, struct cni_error *err)
{
	struct sockaddr_un address;
	int fd;

	if (fill_address(path, &address, err))
		return -1;
	fd = connect_to(&address);
	if (fd < 0)
		cni_error_set(err, CNI_ERROR_IO, "cannot connect to %s: %s", path, strerror(errno));
	return fd;
}

static int clear_path(const char *path, const struct sockaddr_un *address, struct cni_error *err)
{
	cleanup_close int other = connect_to(address);
	struct stat status;

	if (other >= 0)
		return cni_error_set(err, CNI_ERROR_IO,
				     "another process listens at %s: end it, or give another "
				     "--socket",
				     path);
	if (lstat(path, &status))
		return 0;
	if (!S_ISSOCK(status.st_mode) || unlink(path))
		return cni_error_set(err, CNI_ERROR_IO, "%s is in the way and cannot be removed%s",
				     path, S_ISSOCK(status.st_mode) ? "" : ": it is no socket");
	return 0;
}

int socket_listen(const char *path, struct cni_error *err)
{
	struct sockaddr_un address;
	mode_t mask;
	int fd;

	if (fill_address(path, &address, err) || check_directories(path, err) ||
	    clear_path(path, &address, err))
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	mask = umask(0177);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) ||
	    listen(fd, BACKLOG)) {
		cni_error_set(err, CNI_ERROR_IO, "cannot listen at %s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	umask(mask);
	return fd;
}
