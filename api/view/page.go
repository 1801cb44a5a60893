package view

// Page is the answer of a list.
type Page[T any] struct {
	Items []T    `json:"items" doc:"The items of this page."`
	Next  string `json:"next,omitempty" doc:"The value of 'cursor' for the next page. Absent on the last page."`
}
