/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * world.c - what every test begins with: its namespaces, cgroup and file systems, and network
 * namespaces with their settings. Few processes do that, because starting processes is most of what
 * a short test costs.
 */
#include <fcntl.h>
#include <linux/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool.h"

#define NAMESPACES "/run/netns"
#define PLUGINS "/run/cni-plugins"
#define NEVER "/run/never" /* nobody writes to it */
#define PATH_SIZE 256

const char tool_usage[] =
	"world test SECONDS CGROUP COMMAND...\n"
	"                        runs a command in namespaces of its own, and in a cgroup that is\n"
	"                        made for it (\"\": none), for so long at most. TIMES=1: prints "
	"how\n"
	"                        long it took\n"
	"world begin CGROUP [PLUGIN|NAMESPACE]...\n"
	"                        mounts the file systems of a test, cgroup2 at CGROUP (\"\": "
	"none),\n"
	"                        sets up the caller's network namespace, links plugins (what has "
	"a\n"
	"                        slash), and makes network namespaces\n"
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
	static const char *const directories[] = {NAMESPACES, "/run/conf", PLUGINS, "/run/results",
						  "/var/lib/cni"};

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

static void plugin_link(const char *path)
{
	char link[PATH_SIZE];

	if (snprintf(link, PATH_SIZE, PLUGINS "%s", strrchr(path, '/')) >= PATH_SIZE)
		die_usage();
	if (symlink(path, link))
		die(link);
}

static void begin(const char *cgroup, char **names)
{
	mount_at("tmpfs", "/run");
	mount_at("tmpfs", "/var/lib");
	mount_at("sysfs", "/sys");
	mount_at("bpf", "/sys/fs/bpf");
	if (*cgroup)
		mount_at("cgroup2", cgroup);
	make_directories();
	share_namespaces();
	set_up_namespace();
	for (; *names; names++)
		if (strchr(*names, '/'))
			plugin_link(*names);
		else
			namespace_add(*names);
}

/* Of a test: world itself stays outside of its namespaces, and removes its cgroup. */
static const char *test_cgroup;
static pid_t test_process;

static void cgroup_file(char path[PATH_SIZE], const char *name)
{
	if (snprintf(path, PATH_SIZE, "%s/%s", test_cgroup, name) >= PATH_SIZE)
		die_usage();
}

static void cgroup_enter(const char *procs)
{
	char path[PATH_SIZE];

	cgroup_file(path, procs);
	set(path, "0");
}

/* Where it is not empty yet, the caller tries again. */
static void cgroup_leave(void)
{
	cgroup_enter("../cgroup.procs");
	rmdir(test_cgroup);
}

static long cgroup_cpu_milliseconds(void)
{
	char path[PATH_SIZE];
	long microseconds = 0;
	FILE *file;

	cgroup_file(path, "cpu.stat");
	file = fopen(path, "r");
	if (!file || fscanf(file, "usage_usec %ld", &microseconds) != 1)
		die(path);
	fclose(file);
	return microseconds / 1000;
}

static void test_ends(int signal)
{
	kill(test_process, SIGKILL);
}

/* As unshare(1) does it with --kill-child and --mount-proc */
static _Noreturn void test_begin(char **command)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) ||
	    unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWCGROUP) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("proc", "/proc", "proc", MS_NOSUID | MS_NOEXEC | MS_NODEV, NULL))
		die("namespaces");
	execvp(*command, command);
	die(*command);
}

/* Its processes end with the first one. What a terminal sends is for them. */
static int test_wait(int seconds)
{
	int status;

	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGALRM, test_ends);
	alarm((unsigned int)seconds);
	while (waitpid(test_process, &status, 0) < 0)
		if (errno != EINTR)
			die("waitpid");
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int test(int seconds, const char *cgroup, char **command)
{
	const char *times = getenv("TIMES");
	long since = milliseconds_now();
	int code;

	test_cgroup = cgroup;
	if (*cgroup) {
		if (mkdir(cgroup, 0755))
			die(cgroup);
		cgroup_enter("cgroup.procs");
	}
	if (unshare(CLONE_NEWPID))
		die("PID namespace");
	test_process = fork();
	if (test_process < 0)
		die("fork");
	if (test_process == 0)
		test_begin(command);
	code = test_wait(seconds);
	if (times && *times && *cgroup)
		printf("note: took %ld ms, %ld ms of CPU\n", milliseconds_now() - since,
		       cgroup_cpu_milliseconds());
	if (*cgroup)
		cgroup_leave();
	return code;
}

int main(int argc, char **argv)
{
	const char *verb = argc >= 3 ? argv[1] : "";

	if (argc >= 4 && strcmp(verb, "in") == 0)
		run_in(argv[2], argv + 3);
	if (argc >= 5 && strcmp(verb, "test") == 0)
		return test(parse_number(argv[2], 1, 100000000), argv[3], argv + 4);
	umask(022);
	if (strcmp(verb, "begin") == 0) {
		begin(argv[2], argv + 3);
		return 0;
	}
	if (strcmp(verb, "add") != 0)
		die_usage();
	for (int i = 2; i < argc; i++)
		namespace_add(argv[i]);
	return 0;
}
