/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * world.c - what every test begins with: its own file systems, and network namespaces with their
 * settings. One process does that, because starting processes is most of what a short test costs.
 */
#include <fcntl.h>
#include <linux/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool.h"

#define NAMESPACES "/run/netns"
#define NEVER "/run/never" /* nobody writes to it */
#define PATH_SIZE 256

const char tool_usage[] =
	"world begin [CGROUP]    mounts the file systems of a test, cgroup2 at CGROUP, and sets\n"
	"                        up the caller's network namespace\n"
	"world add NAMESPACE...  makes network namespaces in /run/netns\n"
	"world in NAMESPACE COMMAND...\n"
	"                        runs a command in one of them\n";

static void mount_at(const char *type, const char *directory)
{
	if (mount(type, directory, type, 0, NULL))
		die(directory);
}

static void make_directories(void)
{
	static const char *const directories[] = {NAMESPACES, "/run/conf", "/run/cni-plugins",
						  "/run/results", "/var/lib/cni"};

	for (size_t i = 0; i < sizeof(directories) / sizeof(*directories); i++)
		if (mkdir(directories[i], 0755))
			die(directories[i]);
	if (mkfifo(NEVER, 0600))
		die(NEVER);
}

/* As ip-netns(8) has it: also mount namespaces that there are already see a later namespace. */
static void share_namespaces(void)
{
	if (mount(NAMESPACES, NAMESPACES, NULL, MS_BIND, NULL) ||
	    mount(NULL, NAMESPACES, NULL, MS_SHARED, NULL))
		die(NAMESPACES);
}

static void set(const char *setting, const char *value)
{
	int fd = open(setting, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		die(setting);
	close(fd);
}

static void set_up_loopback(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (any < 0 || ioctl(any, SIOCSIFFLAGS, &request))
		die("lo");
	close(any);
}

/* No duplicate address detection, so that no test waits for it; strict reverse path filtering,
 * because many hosts have it. */
static void set_up_namespace(void)
{
	set("/proc/sys/net/ipv6/conf/all/accept_dad", "0");
	set("/proc/sys/net/ipv6/conf/default/accept_dad", "0");
	set("/proc/sys/net/ipv4/conf/all/rp_filter", "1");
	set("/proc/sys/net/ipv4/conf/default/rp_filter", "1");
	set_up_loopback();
}

static int namespace_open(const char *name, int flags, char path[PATH_SIZE])
{
	int fd;

	if (snprintf(path, PATH_SIZE, NAMESPACES "/%s", name) >= PATH_SIZE)
		die_usage();
	fd = open(path, O_RDONLY | O_CLOEXEC | flags, 0);
	if (fd < 0)
		die(path);
	return fd;
}

static void namespace_add(const char *name)
{
	char path[PATH_SIZE];

	close(namespace_open(name, O_CREAT | O_EXCL, path));
	if (unshare(CLONE_NEWNET) || mount("/proc/self/ns/net", path, NULL, MS_BIND, NULL))
		die(path);
	set_up_namespace();
}

/* As nsenter(1), which is linked with three libraries more: that takes longer than to enter. */
static _Noreturn void run_in(const char *name, char **command)
{
	char path[PATH_SIZE];

	if (setns(namespace_open(name, 0, path), CLONE_NEWNET))
		die(path);
	execvp(*command, command);
	die(*command);
}

static void begin(const char *cgroup)
{
	mount_at("tmpfs", "/run");
	mount_at("tmpfs", "/var/lib");
	mount_at("sysfs", "/sys");
	mount_at("bpf", "/sys/fs/bpf");
	if (cgroup)
		mount_at("cgroup2", cgroup);
	make_directories();
	share_namespaces();
	set_up_namespace();
}

int main(int argc, char **argv)
{
	if (argc >= 4 && strcmp(argv[1], "in") == 0)
		run_in(argv[2], argv + 3);
	umask(022);
	if (argc >= 2 && argc <= 3 && strcmp(argv[1], "begin") == 0) {
		begin(argv[2]);
		return 0;
	}
	if (argc < 3 || strcmp(argv[1], "add") != 0)
		die_usage();
	for (int i = 2; i < argc; i++)
		namespace_add(argv[i]);
	return 0;
}
