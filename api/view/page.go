package view

// Page is the answer of a list.
type Page[T any] struct {
	Items []T    `json:"items" doc:"What the page has."`
	Next  string `json:"next,omitempty" doc:"What to give as 'cursor' for the next page. Absent: this is the last."`
}
