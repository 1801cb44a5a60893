// Package release tests files that cannot be run here. It reads the Dockerfile, the compose file
// and the manifests strictly, with the libraries of Docker and Kubernetes themselves, and compares
// them with the program's own settings.
package release

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	network "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

const root = "../../"

// settings returns the variables that `go-crontab serve` reads.
func settings(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("go", "run", ".", "serve", "--help")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}

	names := []string{"GOCRONTAB_DSN_FILE", "GOCRONTAB_LABELS"}
	for _, m := range regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z0-9-]+)`).FindAllStringSubmatch(string(out), -1) {
		names = append(names, "GOCRONTAB_"+strings.ToUpper(strings.ReplaceAll(m[1], "-", "_")))
	}

	if len(names) < 20 {
		t.Fatalf("found %d settings only: %v", len(names), names)
	}

	return names
}

func known(t *testing.T, settings []string, where, name string) {
	t.Helper()
	if strings.HasPrefix(name, "GOCRONTAB_") && !slices.Contains(settings, name) {
		t.Errorf("%s: serve takes no %s", where, name)
	}
}

func TestDockerfile(t *testing.T) {
	path := filepath.Join(root, "deploy/docker/Dockerfile")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}

	lint := linter.New(&linter.Config{Warn: func(name, what, _, message string, at []parser.Range) {
		t.Errorf("%s:%v: %s: %s: %s", path, at, name, what, message)
	}})
	stages, _, err := instructions.Parse(file.AST, lint)
	if err != nil {
		t.Fatal(err)
	}
	last := stages[len(stages)-1]

	var user, entry, mode, runAs string
	for _, c := range last.Commands {
		switch c := c.(type) {
		case *instructions.UserCommand:
			user = c.User
		case *instructions.EntrypointCommand:
			entry = strings.Join(c.CmdLine, " ")
		case *instructions.CopyCommand:
			if c.DestPath == "/usr/bin/go-crontab" {
				mode = c.Chmod
			}
		case *instructions.EnvCommand:
			for _, pair := range c.Env {
				known(t, settings(t), path, pair.Key)
				if pair.Key == "GOCRONTAB_RUN_AS" {
					runAs = pair.Value
				}
			}
		}
	}

	if user != "0:0" || entry != "/usr/bin/go-crontab" {
		t.Errorf("%s: runs %q as %q", path, entry, user)
	}

	// The wall between a node and its commands: another user, and a program that only root can
	// read.
	useradd := []byte("useradd --system --uid 65532 --home-dir /var/lib/" + jobsUser + " ")
	if mode != "0711" || runAs != jobsUser || !bytes.Contains(text, useradd) {
		t.Errorf("%s: the program has the mode %q, commands run as %q; want 0711 and %s, with the id 65532", path, mode,
			runAs, jobsUser)
	}

	// The files that it copies from the repository exist.
	for _, stage := range stages {
		for _, c := range stage.Commands {
			if c, ok := c.(*instructions.CopyCommand); ok && c.From == "" {
				for _, source := range c.SourcePaths {
					if _, err := os.Stat(filepath.Join(root, source)); err != nil {
						t.Errorf("%s: %v", path, err)
					}
				}
			}
		}
	}
}

func TestCompose(t *testing.T) {
	path := filepath.Join(root, "deploy/docker/compose.yaml")
	options, err := cli.NewProjectOptions([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		t.Fatal(err)
	}

	takes, nodes, builds := settings(t), 0, 0
	for name, service := range project.Services {
		for variable := range service.Environment {
			known(t, takes, path+": "+name, variable)
		}

		if strings.HasPrefix(name, "node-") {
			nodes++
			if node := service.Environment["GOCRONTAB_NODE"]; node == nil || *node != name {
				t.Errorf("%s: service %s is not the node of that name", path, name)
			}
			if service.Environment["GOCRONTAB_ADVERTISE"] == nil {
				t.Errorf("%s: service %s is found at the name of a container, which nobody outside knows", path, name)
			}

			if added := slices.Sorted(slices.Values(service.CapAdd)); !slices.Equal(service.CapDrop, []string{"ALL"}) ||
				!slices.Equal(added, switching) || service.User != "" {
				t.Errorf("%s: service %s is user %q, drops the capabilities %v and adds %v; want all dropped but %v",
					path, name, service.User, service.CapDrop, added, switching)
			}

			if !slices.Contains(service.SecurityOpt, "no-new-privileges:true") ||
				service.Environment["GOCRONTAB_RUN_AS"] != nil {
				t.Errorf("%s: service %s lets commands gain rights, or run as another user than the image's", path,
					name)
			}

			if service.PullPolicy != "never" {
				t.Errorf("%s: service %s may be pulled, and another image of the name come", path, name)
			}
		}

		if service.Build != nil {
			builds++
			if service.Build.Args["VERSION"] == nil {
				t.Errorf("%s: %s builds a program that does not know its version", path, name)
			}
			if _, err := os.Stat(filepath.Join(service.Build.Context, service.Build.Dockerfile)); err != nil {
				t.Errorf("%s: %s: %v", path, name, err)
			}
		}
	}

	if nodes != 3 || builds != 1 {
		t.Errorf("%s has %d nodes and builds the image %d times; want 3, and once", path, nodes, builds)
	}
}

func TestKubernetes(t *testing.T) {
	dir := filepath.Join(root, "deploy/kubernetes")

	var list struct {
		APIVersion, Kind, Namespace string
		Resources                   []string
		Images                      []struct{ Name, NewName, NewTag string }
	}

	read(t, filepath.Join(dir, "kustomization.yaml"), &list)
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Resources) != len(files)-1 {
		t.Errorf("the kustomization lists %d of %d files", len(list.Resources), len(files)-1)
	}

	var (
		namespace core.Namespace
		secret    core.Secret
		nodes     apps.StatefulSet
		service   core.Service
		headless  core.Service
		budget    policy.PodDisruptionBudget
		rules     network.NetworkPolicy
	)

	kinds := map[string]any{
		"namespace.yaml": &namespace, "secret.yaml": &secret, "nodes.yaml": &nodes,
		"service.yaml": &service, "headless.yaml": &headless, "disruption.yaml": &budget, "network.yaml": &rules,
	}

	for _, name := range list.Resources {
		if kinds[name] == nil {
			t.Errorf("no test knows %s", name)
			continue
		}
		read(t, filepath.Join(dir, name), kinds[name])
	}

	if t.Failed() {
		return
	}
	if namespace.Name != list.Namespace {
		t.Errorf("the namespace is %s, and %s in the kustomization", namespace.Name, list.Namespace)
	}

	takes := settings(t)

	labels := nodes.Spec.Template.Labels
	for name, selector := range map[string]map[string]string{
		"the StatefulSet": nodes.Spec.Selector.MatchLabels, "the Service": service.Spec.Selector,
		"the headless Service":    headless.Spec.Selector,
		"the PodDisruptionBudget": budget.Spec.Selector.MatchLabels,
		"the NetworkPolicy":       rules.Spec.PodSelector.MatchLabels,
	} {
		if fmt.Sprint(selector) != fmt.Sprint(labels) {
			t.Errorf("%s selects %v; the nodes are %v", name, selector, labels)
		}
	}

	pod := nodes.Spec.Template.Spec

	// Root, because only root can run commands as another user in a container; and without a group
	// that could read the secret.
	if s := pod.SecurityContext; *s.RunAsUser != 0 || s.FSGroup != nil ||
		s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the nodes run as user %d, group %v, %+v", *s.RunAsUser, s.FSGroup, s.SeccompProfile)
	}
	if namespace.Labels["pod-security.kubernetes.io/enforce"] != "baseline" {
		t.Errorf("the namespace enforces %v; the nodes fit baseline", namespace.Labels)
	}

	for _, v := range pod.Volumes {
		if v.Secret != nil && (v.Secret.DefaultMode == nil || *v.Secret.DefaultMode != 0o400) {
			t.Errorf("the secret %s can be read by others than root", v.Secret.SecretName)
		}
	}

	if mounts := pod.AutomountServiceAccountToken; mounts == nil || *mounts {
		t.Error("commands can read the token of the pod's service account")
	}

	// Before the first node of a new version starts, its own program upgrades the tables.
	if len(pod.InitContainers) != 1 ||
		!strings.Contains(fmt.Sprint(pod.InitContainers[0].Command), "go-crontab migrate") {
		t.Error("nothing migrates before a node starts")
	}

	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, variable := range c.Env {
			known(t, takes, c.Name, variable.Name)
		}

		for _, mount := range c.VolumeMounts {
			if !slices.ContainsFunc(pod.Volumes, func(v core.Volume) bool { return v.Name == mount.Name }) &&
				!slices.ContainsFunc(nodes.Spec.VolumeClaimTemplates,
					func(v core.PersistentVolumeClaim) bool { return v.Name == mount.Name }) {
				t.Errorf("%s: no volume %s", c.Name, mount.Name)
			}
		}

		if !slices.ContainsFunc(list.Images,
			func(i struct{ Name, NewName, NewTag string }) bool { return i.Name == c.Image }) {
			t.Errorf("%s: the kustomization knows no image %s", c.Name, c.Image)
		}
		if s := c.SecurityContext; *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem ||
			fmt.Sprint(s.Capabilities.Drop) != "[ALL]" {
			t.Errorf("%s: may do more than it needs", c.Name)
		}

		var added []string
		for _, name := range c.SecurityContext.Capabilities.Add {
			added = append(added, string(name))
		}

		want := switching
		if c.Name != "node" {
			want = nil
		}
		if slices.Sort(added); !slices.Equal(added, want) {
			t.Errorf("%s: has the capabilities %v, want %v", c.Name, added, want)
		}
	}

	if nodes.Spec.ServiceName != headless.Name || headless.Spec.ClusterIP != core.ClusterIPNone {
		t.Error("the nodes have no headless service")
	}

	node := pod.Containers[0]
	for _, s := range []core.Service{service, headless} {
		if s.Spec.Ports[0].TargetPort.StrVal != node.Ports[0].Name {
			t.Errorf("the service %s and the nodes do not meet", s.Name)
		}
	}

	value := func(name string) string {
		at := slices.IndexFunc(node.Env, func(e core.EnvVar) bool { return e.Name == name })
		if at < 0 {
			t.Errorf("%s is not set", name)
			return ""
		}
		return node.Env[at].Value
	}
	if !slices.Contains(strings.Split(value("GOCRONTAB_HOST"), ","), service.Name+"."+list.Namespace+".svc") {
		t.Error("the nodes refuse who asks the service by its name")
	}

	value("GOCRONTAB_ADVERTISE")
	if as := value("GOCRONTAB_RUN_AS"); as != "65532:65532" {
		t.Errorf("commands run as %q", as)
	}

	// Otherwise the slots follow the machine's processors, and that number of commands by far
	// exceeds the container's limits.
	if !node.Resources.Limits.Memory().IsZero() && value("GOCRONTAB_SLOTS") == "" {
		t.Error("the container has a limit of memory, and its node no limit of slots")
	}
	if drain, err := time.ParseDuration(value("GOCRONTAB_DRAIN_GRACE")); err != nil ||
		time.Duration(*pod.TerminationGracePeriodSeconds)*time.Second <= drain {
		t.Errorf("a pod has %d s to end, and its drain takes %s: %v", *pod.TerminationGracePeriodSeconds, drain, err)
	}

	// A flood of API requests must not make the kubelet kill a node, and no pod may flood the
	// address that the kubelet probes.
	for _, p := range []*core.Probe{node.LivenessProbe, node.ReadinessProbe} {
		if port := p.HTTPGet.Port.StrVal; port != "probe" ||
			!strings.HasSuffix(value("GOCRONTAB_PROBE_LISTEN"), ":8611") {
			t.Errorf("a probe asks the port %s", port)
		}
	}

	for _, rule := range rules.Spec.Ingress {
		if len(rule.Ports) != 1 || rule.Ports[0].Port.StrVal != node.Ports[0].Name {
			t.Errorf("pods reach the ports %v, want only that of the API", rule.Ports)
		}
	}

	// It kills the commands of a node, so an API that is full for a moment must not be enough.
	if p := node.LivenessProbe; p != nil && (p.TimeoutSeconds < 5 || p.PeriodSeconds*p.FailureThreshold < 300) {
		t.Errorf("the liveness probe gives up too early: %+v", p)
	}
	if list.Images[0].NewTag == "latest" {
		t.Error("the image is whatever is the latest")
	}
	if _, ok := secret.StringData["dsn"]; !ok {
		t.Error("the secret has no dsn")
	}
}

// TestVariables: variables in comments count as well.
func TestVariables(t *testing.T) {
	takes, found := settings(t), 0
	for _, pattern := range []string{"deploy/package/*.env", "deploy/systemd/*", "deploy/kubernetes/*.yaml",
		"deploy/docker/*"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}

		for _, path := range files {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range regexp.MustCompile(`GOCRONTAB_[A-Z_]+`).FindAllString(string(text), -1) {
				found++
				known(t, takes, path, name)
			}
		}
	}

	if found < 20 {
		t.Errorf("only %d variables were found", found)
	}
}

// jobsUser is the user that runs commands in containers; switching holds the capabilities that a
// node needs to change to it, by their names in containers.
const jobsUser = "go-crontab-jobs"

var switching = []string{"KILL", "SETGID", "SETUID"}

// TestUnit: under systemd commands run as a different user from the node, and neither user can gain
// privileges.
func TestUnit(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "deploy/systemd/go-crontab.service"))
	if err != nil {
		t.Fatal(err)
	}

	got := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			got[name] = append(got[name], strings.Fields(value)...)
		}
	}

	capabilities := []string{"CAP_SETUID", "CAP_SETGID", "CAP_KILL"}
	for name, want := range map[string][]string{
		"User": {"go-crontab"}, "Group": {"go-crontab"}, "NoNewPrivileges": {"yes"}, "StateDirectoryMode": {"0700"},
		"AmbientCapabilities": capabilities, "CapabilityBoundingSet": capabilities,
		"Environment": {"GOCRONTAB_STATE_DIR=/var/lib/go-crontab", "GOCRONTAB_RUN_AS=" + jobsUser},
	} {
		if !slices.Equal(got[name], want) {
			t.Errorf("%s=%v, want %v", name, got[name], want)
		}
	}

	// Node and guard look in /proc for their commands, which belong to another user.
	if got["ProtectProc"] != nil {
		t.Errorf("ProtectProc=%v hides the commands from the node", got["ProtectProc"])
	}

	users, err := os.ReadFile(filepath.Join(root, "deploy/package/sysusers.conf"))
	if err != nil || !bytes.Contains(users, []byte("u go-crontab - ")) ||
		!bytes.Contains(users, []byte("u "+jobsUser+" - ")) {
		t.Errorf("the package makes these users: %v\n%s", err, users)
	}
}

// TestPackages: each packager gets every file once, and the files that are not built exist.
func TestPackages(t *testing.T) {
	var list struct {
		Contents []struct {
			Src, Dst, Packager string
			FileInfo           struct {
				Mode         int
				Owner, Group string
			} `json:"file_info"`
		}
	}

	text, err := os.ReadFile(filepath.Join(root, "deploy/package/nfpm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}

	modes := map[string]int{"/usr/bin/go-crontab": 0o711, "/etc/go-crontab/serve.env": 0o600}
	for _, c := range list.Contents {
		if want, ok := modes[c.Dst]; ok && (c.FileInfo.Mode != want || c.FileInfo.Owner != "root" ||
			c.FileInfo.Group != "root") {
			t.Errorf("%s: %+v, want the mode %o and root's", c.Dst, c.FileInfo, want)
		}
		delete(modes, c.Dst)
	}

	if len(modes) > 0 {
		t.Errorf("not packed: %v", modes)
	}

	for packager, zsh := range map[string]string{"deb": "/usr/share/zsh/vendor-completions/_go-crontab",
		"rpm": "/usr/share/zsh/site-functions/_go-crontab"} {
		var functions []string
		for _, c := range list.Contents {
			if c.Packager != "" && c.Packager != packager {
				continue
			}
			if strings.HasSuffix(c.Src, ".zsh") {
				functions = append(functions, c.Dst)
			}

			if c.Src != "" && !strings.HasPrefix(c.Src, "${OUT}") {
				if _, err := os.Stat(filepath.Join(root, c.Src)); err != nil {
					t.Error(err)
				}
			}
		}

		if !slices.Equal(functions, []string{zsh}) {
			t.Errorf("%s: completions of zsh in %v, want %s", packager, functions, zsh)
		}
	}
}

// TestPages: pages are packed together with the pages that they link to.
func TestPages(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(root, "tools/release.sh"))
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?m)^pages="(.+)"$`).FindSubmatch(script)
	if list == nil {
		t.Fatal("tools/release.sh packs no pages")
	}

	packed := map[string]bool{} // by name, folders included
	for _, pattern := range strings.Fields(string(list[1])) {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(names) == 0 {
			t.Errorf("there is no %s: %v", pattern, err)
		}

		for _, name := range names {
			err := filepath.WalkDir(name, func(path string, _ fs.DirEntry, err error) error {
				packed[path] = true
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
	}

	code := regexp.MustCompile("(?s)```.*?\n```|`[^`\n]*`")
	target := regexp.MustCompile(`\]\(([^()\s#]+)[^()\s]*\)`)
	links := 0
	for page := range packed {
		if filepath.Ext(page) != ".md" {
			continue
		}

		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}

		for _, m := range target.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			if to := filepath.Join(filepath.Dir(page), m[1]); !packed[to] {
				t.Errorf("%s: %s is not packed", page, m[1])
			}
		}
	}

	if links < 200 {
		t.Errorf("only %d links were found", links)
	}
}

// read reads a file strictly: unknown fields are errors.
func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Errorf("%s: %v", path, err)
	}
}
