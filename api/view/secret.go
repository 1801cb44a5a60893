package view

import (
	"time"

	"go-crontab/job"
)

// Secret is a secret as clients see it. No answer ever holds a value.
type Secret struct {
	Name     job.Secret `json:"name" doc:"Its name. Jobs use it as {{secret.NAME}}. Each app can have its own secret of this name."`
	App      string     `json:"app,omitempty" doc:"The app whose jobs can use it. Absent: jobs of all apps that have no secret of this name."`
	Key      string     `json:"key" doc:"The id of the key that it is encrypted with."`
	KeyState string     `json:"key_state" enum:"current,old,unknown" doc:"Whether that is the answering node's current key, another key that it has, or a key that it does not have."`
	Created  time.Time  `json:"created" doc:"When it was created."`
	Updated  time.Time  `json:"updated" doc:"When its value was last set."`
	By       string     `json:"updated_by" doc:"Who set its value."`
}

// Rotated is the result of a rotation.
type Rotated struct {
	Key     string         `json:"key" doc:"The id of the key that secrets are encrypted with now."`
	Rotated int            `json:"rotated" doc:"How many secrets were encrypted again, because they had another key."`
	Failed  []FailedSecret `json:"failed" doc:"The secrets that the node cannot decrypt. They stay as they are."`
}

type FailedSecret struct {
	Name job.Secret `json:"name" doc:"Its name."`
	App  string     `json:"app,omitempty" doc:"The app that it belongs to. Absent: all apps."`
	Why  string     `json:"why" doc:"Why it cannot be decrypted."`
}
