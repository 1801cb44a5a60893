package auth

import (
	"slices"
	"strings"
	"testing"

	"go-crontab/job"
)

func TestRolesAndApps(t *testing.T) {
	t.Parallel()
	anybody := &Principal{}
	unlimited := &Principal{Grants: []Grant{{Role: Operator}}}
	limited := &Principal{Grants: []Grant{{Admin, []string{"billing", "ops"}}}}
	mixed := &Principal{Grants: []Grant{{Viewer, nil}, {Operator, []string{"billing"}}}}
	none := &Principal{Grants: []Grant{{Admin, []string{}}}}
	for _, c := range []struct {
		what      string
		got, want bool
	}{
		{"nobody reads", anybody.May(Viewer), false},
		{"nobody has no role", anybody.May(None), false},
		{"nobody reads an app", anybody.MayIn(Viewer, "billing"), false},
		{"an operator operates everywhere", unlimited.May(Operator), true},
		{"and reads", unlimited.May(Viewer), true},
		{"and writes nothing", unlimited.May(Admin), false},
		{"and needs some role", unlimited.May(None), false},
		{"in any app", unlimited.MayIn(Operator, "x"), true},
		{"an admin of apps is none of the cluster", limited.May(Admin), false},
		{"nor a reader of it", limited.May(Viewer), false},
		{"but is in the apps", limited.MayIn(Admin, "ops"), true},
		{"and not beside them", limited.MayIn(Viewer, "op"), false},
		{"nor in what belongs to none", limited.MayIn(Viewer, ""), false},
		{"a reader of all reads all", mixed.May(Viewer), true},
		{"and operates where it may", mixed.MayIn(Operator, "billing"), true},
		{"and only there", mixed.MayIn(Operator, "ops"), false},
		{"a list of no apps covers none", none.MayIn(Viewer, "billing"), false},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", c.what, c.got, c.want)
		}
	}

	for _, c := range []struct {
		p    *Principal
		want []string
	}{{anybody, []string{}}, {unlimited, nil}, {limited, []string{"billing", "ops"}}, {mixed, nil},
		{none, []string{}}} {
		if got := c.p.Sees(); !slices.Equal(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("%s sees %#v, want %#v", c.p, got, c.want)
		}
	}

	if mixed.Role() != Operator || anybody.Role() != None {
		t.Errorf("highest roles: got %s and %s", mixed.Role(), anybody.Role())
	}
	if got := Of(t.Context()); got.Name != job.Anonymous || got.MayIn(Viewer, "x") {
		t.Errorf("a context without anybody: got %s", got)
	}

	ctx := With(job.WithActor(t.Context(), job.Actor{Who: job.Anonymous, Origin: "1.2.3.4"}), &Principal{Name: "ci"})
	if got := job.ActorOf(ctx); got.Who != "ci" || got.Origin != "1.2.3.4" {
		t.Errorf("actor: got %+v", got)
	}
}

// TestKeys checks that callers of the same name have different keys, and that a token and the
// browser that signed in with it have the same.
func TestKeys(t *testing.T) {
	t.Parallel()
	viewer, admin := []Grant{{Role: Viewer}}, []Grant{{Role: Admin}}
	token := Principal{Name: "ci", Kind: KindToken, Grants: admin, Token: 7}
	login := token
	login.Login, login.Expires = 3, 1
	if token.Key() != login.Key() {
		t.Errorf("got %s and %s", token.Key(), login.Key())
	}

	seen := map[string]Principal{}
	for _, p := range []Principal{
		token, {Name: "ci", Kind: KindToken, Grants: admin, Token: 8}, {Name: "a@b.c", Kind: KindOIDC, Grants: viewer},
		{Name: "a@b.c", Kind: KindOIDC, Grants: admin},
		{Name: "b@b.c", Kind: KindOIDC, Grants: admin},
	} {
		if other, is := seen[p.Key()]; is {
			t.Errorf("%+v and %+v are both %s", p, other, p.Key())
		}
		seen[p.Key()] = p
	}
}

func TestRoleNames(t *testing.T) {
	t.Parallel()
	for _, name := range RoleNames() {
		r, err := ParseRole(name)
		if err != nil || r.String() != name || r == None {
			t.Errorf("%s: got %s, %v", name, r, err)
		}
	}

	for _, name := range []string{"", "none", "Admin", "root", "viewer "} {
		if r, err := ParseRole(name); err == nil || r != None {
			t.Errorf("%q: got %s, want no role", name, r)
		}
	}
}

func TestRoleMap(t *testing.T) {
	t.Parallel()
	m := RoleMap{}
	for _, list := range []string{`admins=admin, devs=operator:app1|app2`, `cn=wheel\,dc=x=viewer`, ``} {
		err := m.Add(list)
		if wrong := strings.Contains(list, "wheel"); wrong != (err != nil) {
			t.Errorf("%q: got %v", list, err)
		}
	}

	if err := m.Add(`cn\=wheel\,dc\=x=viewer,devs=viewer,admins=admin:app1`); err != nil {
		t.Fatal(err)
	}

	for groups, want := range map[string]string{
		"":                      "",
		"strangers":             "",
		"devs":                  "operator of app1, app2; viewer",
		"cn=wheel,dc=x":         "viewer",
		"admins":                "admin",
		"admins;devs":           "admin",
		"cn=wheel,dc=x;devs":    "operator of app1, app2; viewer",
		"devs;devs":             "operator of app1, app2; viewer",
		"Admins;admins ;admin":  "",
		"cn\\=wheel\\,dc\\=x":   "",
		"cn=wheel,dc=x;cn=whee": "viewer",
	} {
		var texts []string
		for _, g := range m.grants(strings.Split(groups, ";")) {
			texts = append(texts, g.String())
		}
		slices.Sort(texts)
		if got := strings.Join(texts, "; "); got != want {
			t.Errorf("%q: got %q, want %q", groups, got, want)
		}
	}

	for list, want := range map[string]string{
		"admins": "want group=role", "a=b=viewer": "want group=role", "=admin": "has no name", "a=root": "is not a role",
		"a=":        "is not a role",
		"a=viewer:": "empty name", "a=viewer:x||y": "empty name", "a=viewer:x|x": "twice",
		"a=viewer:x\x00": "not a valid app name",
	} {
		if err := (RoleMap{}).Add(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", list, err, want)
		}
	}
}
