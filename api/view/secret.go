package view

import (
	"time"

	"go-crontab/job"
)

// Secret is a secret as clients see it. No answer ever holds a value.
type Secret struct {
	Name     job.Secret `json:"name" doc:"Its name, by which jobs use it: {{secret.NAME}}. Each app may have one of the name."`
	App      string     `json:"app,omitempty" doc:"The app that it belongs to, whose jobs alone may use it. Absent: it is for jobs of all apps that have none of this name."`
	Key      string     `json:"key" doc:"The id of the key that it is sealed with."`
	KeyState string     `json:"key_state" enum:"current,old,unknown" doc:"Whether that is the key with which the answering node seals, another one that it has, or one that it has not."`
	Created  time.Time  `json:"created" doc:"When it was created."`
	Updated  time.Time  `json:"updated" doc:"When it got its value."`
	By       string     `json:"updated_by" doc:"Who gave it that."`
}

// Rotated is the result of a rotation.
type Rotated struct {
	Key     string         `json:"key" doc:"The id of the key that secrets are sealed with now."`
	Rotated int            `json:"rotated" doc:"How many were sealed with another one."`
	Failed  []FailedSecret `json:"failed" doc:"Those that the node cannot open; they stay as they are."`
}

type FailedSecret struct {
	Name job.Secret `json:"name" doc:"Its name."`
	App  string     `json:"app,omitempty" doc:"The app that it belongs to. Absent: all apps."`
	Why  string     `json:"why" doc:"Why it cannot be opened."`
}
