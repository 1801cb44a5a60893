package execute

import (
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// account is the user and group that a command runs as, if not the node's own.
type account struct {
	uid, gid   uint32
	groups     []uint32 // supplementary groups; gid may be among them
	name, home string
}

// account returns the account of an attempt. nil means the node's own user: no switch, and the
// node's own HOME and USER.
//
// A node that may switch runs commands as any user, unless the operator sets Allow or RunAs. With
// one of these, it runs them only as the users named there, and not even as its own user.
// Otherwise a job that names no user would get the rights of a node that runs as root.
func (s *Shell) account(want string) (*account, error) {
	if want == "" {
		if s.usual != nil || len(s.cfg.Allow) == 0 {
			return s.usual, nil
		}
		own, err := ownAccount()
		if err == nil && !own.listed(s.cfg.Allow) {
			err = fmt.Errorf("user: the job names none, and the node's own user %s "+
				"is not in its --run-as-allow: %s; set user in the job, or start the node with --run-as",
				own.name, strings.Join(s.cfg.Allow, ", "))
		}
		return nil, err
	}

	name, group, withGroup := strings.Cut(want, ":")
	a, err := findAccount(name, withGroup)
	if err != nil {
		return nil, err
	}
	if withGroup {
		gid, err := findGroup(group)
		if err != nil {
			return nil, err
		}
		if len(s.cfg.Allow) > 0 && !a.member(gid) {
			return nil, fmt.Errorf("user: %s is not a member of group %s, which this node's --run-as-allow requires",
				name, group)
		}
		a.gid = gid
	}

	switch {
	case len(s.cfg.Allow) > 0 && !a.listed(s.cfg.Allow):
		return nil, fmt.Errorf("user: %s is not in this node's --run-as-allow: %s",
			a.name, strings.Join(s.cfg.Allow, ", "))
	case !a.own() && !maySwitch():
		return nil, fmt.Errorf("user: this node may not run commands as %s: it %s", want, needsRights)
	}
	return a, nil
}

const needsRights = "must run as root or have CAP_SETUID, CAP_SETGID and CAP_KILL " +
	"(in a container, add these three)"

// settleAccounts checks RunAs and Allow, and finds the account for jobs that name no user.
//
// With RunAs no command runs as the node's own user, because it could read the node's secrets,
// such as the database's password. So a job may name another user only if the operator lists that
// user. The node's own user cannot be listed.
func (s *Shell) settleAccounts() error {
	if s.cfg.RunAs == "" {
		return nil
	}
	flag := "--run-as " + s.cfg.RunAs
	name, group, withGroup := strings.Cut(s.cfg.RunAs, ":")
	a, err := findAccount(name, withGroup)
	if err == nil && withGroup {
		a.gid, err = findGroup(group)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}

	own, err := ownAccount()
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	if len(s.cfg.Allow) == 0 {
		s.cfg.Allow = []string{a.name}
	}
	switch {
	case a.uid == own.uid:
		return fmt.Errorf("%s: that is the node's own user, "+
			"so commands could read the database password; name another user", flag)
	case !maySwitch():
		return fmt.Errorf("%s: this node may not run commands as another user: it %s; "+
			"without --run-as (GOCRONTAB_RUN_AS=) commands run as the node's own user, "+
			"and can read the database password", flag, needsRights)
	case !a.listed(s.cfg.Allow):
		return fmt.Errorf("%s: --run-as-allow does not list that user; it lists %s",
			flag, strings.Join(s.cfg.Allow, ", "))
	case own.listed(s.cfg.Allow):
		return fmt.Errorf("%s: --run-as-allow lists %s, the node's own user, "+
			"whose commands could read the database password; remove it", flag, own.name)
	}
	s.usual = a
	return nil
}

// credential returns the user and groups to set at the fork; nil: no switch is needed or possible.
// Without a switch the supplementary groups stay the node's, because only a node that may switch
// users can change them.
func (a *account) credential() *syscall.Credential {
	if a.own() && !maySwitch() {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid, Groups: a.groups}
}

// own reports whether the account is the node's own.
func (a *account) own() bool { return int(a.uid) == os.Geteuid() && int(a.gid) == os.Getegid() }

// listed reports whether a list names the account's user, by name or id.
func (a *account) listed(list []string) bool {
	return slices.Contains(list, a.name) || slices.Contains(list, strconv.Itoa(int(a.uid)))
}

func (a *account) member(gid uint32) bool { return gid == a.gid || slices.Contains(a.groups, gid) }

// environ returns the variables that name the account to its commands.
func (a *account) environ() map[string]string {
	return map[string]string{"HOME": a.home, "USER": a.name, "LOGNAME": a.name}
}

// ownAccount returns the node's own user.
func ownAccount() (*account, error) {
	uid := strconv.Itoa(os.Geteuid())
	u, err := user.LookupId(uid)
	if err != nil {
		return &account{uid: uint32(os.Geteuid()), gid: uint32(os.Getegid()), name: uid, home: "/"}, nil
	}
	return accountOf(u)
}

// findAccount looks up a user by name or, if no user has that name, by id. An id without a user is
// accepted if the group is named, too, because containers often run with such ids.
func findAccount(name string, withGroup bool) (*account, error) {
	u, err := user.Lookup(name)
	uid, numberErr := strconv.ParseUint(name, 10, 31)
	if err != nil && numberErr == nil {
		u, err = user.LookupId(name)
		if err != nil && withGroup {
			return &account{uid: uint32(uid), gid: uint32(uid), name: name, home: "/"}, nil
		}
	}
	if err != nil {
		hint := ""
		if numberErr == nil {
			hint = "; to use an id that no user has, name its group as well: " + name + ":" + name
		}
		return nil, fmt.Errorf("user: this node has no user %s%s", name, hint)
	}
	return accountOf(u)
}

func accountOf(u *user.User) (*account, error) {
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user: %s has the id %q", u.Username, u.Uid)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user: %s has the group %q", u.Username, u.Gid)
	}
	a := &account{uid: uint32(uid), gid: uint32(gid), name: u.Username, home: u.HomeDir}
	ids, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("user: the groups of %s: %w", u.Username, err)
	}
	for _, id := range ids {
		if gid, err := strconv.ParseUint(id, 10, 32); err == nil {
			a.groups = append(a.groups, uint32(gid))
		}
	}
	return a, nil
}

// findGroup looks up a group by name or id. An id without a group is accepted.
func findGroup(name string) (uint32, error) {
	g, err := user.LookupGroup(name)
	if err == nil {
		name = g.Gid
	}
	gid, numberErr := strconv.ParseUint(name, 10, 31)
	if numberErr != nil {
		return 0, fmt.Errorf("user: this node has no group %s", name)
	}
	return uint32(gid), nil
}
