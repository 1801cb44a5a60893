// Package client is made of the OpenAPI document of a cluster, by oapi-codegen, when it is needed.
package client
