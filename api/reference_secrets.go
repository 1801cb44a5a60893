package api

import (
	"net/http"

	"go-crontab/api/view"
	"go-crontab/job"
)

// secretBody describes the body for Server.putSecret.
type secretBody struct {
	Value string `json:"value" doc:"The value: text of 4 to 65536 bytes. No answer ever contains it."`
	App   string `json:"app,omitempty" doc:"The app whose jobs can use it. Absent or empty: jobs of all apps that have no secret of this name."`
}

var secretAppParam = textParam{
	declared{"app", "The app that it belongs to. Absent: the secret for all apps.", "billing"}, job.MaxName,
}

var (
	listSecretsDoc = operation{
		id: "listSecrets", tag: tagSecrets, summary: "List secrets",
		about: "In the order of their creation, without their values, which are never shown. Secrets of apps that the " +
			"caller cannot read are left out.",
		query: []parameter{limitParam, pageParam}, replies: found[view.Page[view.Secret]]("A page of secrets."),
	}
	putSecretDoc = operation{
		id: "putSecret", tag: tagSecrets, most: maxSecretBody, unless: true, summary: "Set a secret",
		about: "Creates the secret, or changes its value. Runs that begin more than two seconds after the answer use " +
			"the new value. This needs the role admin in its app, or of the cluster for a secret of all apps. " +
			"Each app can have a secret of the same name, besides the one for all apps: a job uses its app's " +
			"secret, or else the one for all apps.",
		body: &requestBody{
			of: of[secretBody](), about: "The value.", example: `{"value": "a1b2c3d4", "app": "billing"}`,
		},
		replies: []reply{
			{status: http.StatusOK, about: "The secret has its new value.", of: of[view.Secret]()}, {
				status: http.StatusCreated, about: "The secret was created.", of: of[view.Secret](),
			},
		},
		problems: []kind{noSecretKey, unknownOutcome},
	}
	deleteSecretDoc = operation{
		id: "deleteSecret", tag: tagSecrets, summary: "Delete a secret",
		about: "A secret that jobs use cannot be deleted. This needs the role admin in its app, or of the cluster for " +
			"a secret of all apps.",
		query:   []parameter{secretAppParam},
		replies: gone, problems: []kind{notFound, inUse, unknownOutcome},
	}
	rotateSecretsDoc = operation{
		id: "rotateSecrets", tag: tagSecrets, once: true, summary: "Encrypt all secrets with the current key",
		about: "The current key is the first key of the answering node. Values stay the same, and jobs keep running, as " +
			"long as " +
			"all nodes have that key.",
		body: emptyBody, replies: []reply{{status: http.StatusOK, about: "The result.", of: of[view.Rotated]()}},
		problems: []kind{noSecretKey, unknownOutcome},
	}
)
