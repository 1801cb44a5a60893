package api

import (
	"net/http"

	"go-crontab/job"
)

// secretBody describes the body for Server.putSecret.
type secretBody struct {
	Value string `json:"value" doc:"The value: text of 4 to 65536 bytes. No answer ever contains it."`
	App   string `json:"app,omitempty" doc:"The app whose jobs can use it. Absent or empty: jobs of all apps that have no secret of this name."`
}

var secretAppParam = textParam{
	declared{"app", "The app that it belongs to. Absent: it is that of all apps.", "billing"}, job.MaxName,
}

var (
	listSecretsDoc = operation{
		id: "listSecrets", tag: tagSecrets, summary: "List secrets",
		about: "In the order of their creation, without their values, which nothing shows. Those of apps of which " +
			"one may see nothing are left out.",
		query: []parameter{limitParam, pageParam}, replies: found[page[secretView]]("A page of secrets."),
	}
	putSecretDoc = operation{
		id: "putSecret", tag: tagSecrets, most: maxSecretBody, unless: true, summary: "Set a secret",
		about: "Makes it, or gives it another value. Runs that begin more than two seconds after the answer use " +
			"that. It takes role admin of its app, or of the cluster if it is for all apps. " +
			"Each app may have a secret of the same name, and there may be one for all apps: a job uses its app's " +
			"own, or else that.",
		body: &requestBody{
			of: of[secretBody](), about: "The value.", example: `{"value": "a1b2c3d4", "app": "billing"}`,
		},
		replies: []reply{
			{status: http.StatusOK, about: "It has its value.", of: of[secretView]()}, {
				status: http.StatusCreated, about: "It is new.", of: of[secretView](),
			},
		},
		problems: []kind{noSecretKey, unknownOutcome},
	}
	deleteSecretDoc = operation{
		id: "deleteSecret", tag: tagSecrets, summary: "Delete a secret",
		about:   "Only one that no job uses. It takes role admin of its app, or of the cluster if it is for all apps.",
		query:   []parameter{secretAppParam},
		replies: gone, problems: []kind{notFound, inUse, unknownOutcome},
	}
	rotateSecretsDoc = operation{
		id: "rotateSecrets", tag: tagSecrets, once: true, summary: "Seal all secrets with the first key",
		about: "Of the keys that the answering node has. Their values stay, and jobs run on meanwhile, as long as " +
			"all nodes have that key.",
		body: emptyBody, replies: []reply{{status: http.StatusOK, about: "What was done.", of: of[rotatedView]()}},
		problems: []kind{noSecretKey, unknownOutcome},
	}
)
