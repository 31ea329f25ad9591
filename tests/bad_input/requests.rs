//! HTTP requests to a locked route: refused with a response before anything is asked of DynamoDB.

use std::convert::Infallible;

use http::{Request, Response};
use lambda_runtime::Diagnostic;
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::stage::{NOWHERE, Stage};
use crate::table::{Case, Kind, Seen, case, check};

/// The layer's route, and the path of a request.
type Input = (&'static str, String);

fn cases() -> Vec<Case<Input>> {
    use Kind::*;
    const ORDER: &str = "/orders/{id}";
    let none = "is none of the layer's routes (`/orders/{id}`): put the layer around those only";
    let path = |path: &str| (ORDER, path.to_owned());
    vec![
        case(Empty, path("/"), "RouteNotMatched", none, 0),
        case(Empty, path("/orders/"), "RouteNotMatched", none, 0),
        case(Truncated, path("/orders"), "RouteNotMatched", none, 0),
        case(Oversized, path(&format!("/orders/{}", "x".repeat(2_042))), "KeyInvalid", "take the key from", 0),
        case(Oversized, path(&format!("/{}", "x/".repeat(10_000))), "RouteNotMatched", none, 0),
        case(WrongType, path("/orders/17/items"), "RouteNotMatched", none, 0),
        case(WrongVersion, path("/v2/orders/17/"), "RouteNotMatched", none, 0),
        case(NotUtf8, path("/orders/%FF"), "KeyInvalid", "`id` is not UTF-8 once it is percent-decoded", 0),
        case(Other, ("/{id}", "/17/cancel".to_owned()), "RouteNotMatched", "(`/{id}`)", 0),
    ]
}

async fn run((route, path): Input) -> Seen {
    let stage = Stage::over(NOWHERE);
    let told = stage
        .layer("orders:{id}")
        .per_route(route)
        .on_refusal(|error, problem| problem.map(|_| format!("{}\n{error}", error.error_type())));
    let handler = service_fn(async |_: Request<()>| Ok::<_, Infallible>(Response::new("handled\n".to_owned())));
    let request = Request::post(path).body(()).unwrap();
    let Ok(response) = told.build().unwrap().layer(handler).oneshot(request).await;
    let (error_type, message) = response.body().split_once('\n').unwrap();
    let refused = Diagnostic { error_type: error_type.to_owned(), error_message: message.to_owned() };
    stage.end(Err(refused)).await
}

#[tokio::test]
async fn requests_whose_path_gives_no_key() {
    check("request", cases(), run).await;
}
