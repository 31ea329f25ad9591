//! From a request's path to its parameters, by the routes that a layer was given.

use std::collections::BTreeMap;

use matchit::Router;
use percent_encoding::percent_decode_str;

/// A layer's routes.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    /// To whether something may stand before the route in a request's path.
    router: Router<bool>,
    routes: Vec<String>,
}

/// What a request's path gave for the parameters of its route, percent-decoded.
pub(super) type Params = BTreeMap<String, String>;

/// Why a path gives no parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoParams {
    /// It is none of the routes.
    NotMatched,
    /// This parameter of it is not UTF-8.
    NotUtf8(String),
}

impl Paths {
    /// Reads routes; what is wrong with them goes to the problems.
    pub(super) fn parse(routes: Vec<String>, problems: &mut Vec<String>) -> Self {
        let mut router = Router::new();
        for route in &routes {
            if !route.starts_with('/') {
                problems.push(format!("the route `{route}` does not begin with `/`: write it as the router has it"));
                continue;
            }
            // Where its first segment is a parameter, any path with more segments would do.
            let begins_with_a_name = !route.split('/').nth(1).unwrap_or_default().contains('{') && route != "/";
            if let Err(error) = router.insert(route, begins_with_a_name) {
                problems.push(format!("the route `{route}` can't be used: {error}"));
            }
        }
        Self { router, routes }
    }

    pub(super) fn routes(&self) -> &[String] {
        &self.routes
    }

    /// What the path has for its route's parameters.
    ///
    /// A stage, a base path or an outer router's prefix may stand before the route.
    pub(super) fn params(&self, path: &str) -> Result<Params, NoParams> {
        let mut rest = path;
        let matched = loop {
            match self.router.at(rest) {
                Ok(matched) if rest.len() == path.len() || *matched.value => break matched.params,
                _ => {}
            }
            let next = rest.get(1..).and_then(|behind| behind.find('/')).ok_or(NoParams::NotMatched)?;
            rest = rest.get(1 + next..).ok_or(NoParams::NotMatched)?;
        };
        let decoded = matched.iter().map(|(name, value)| {
            // As the handler reads it: otherwise `1%37` would be another lock than `17`.
            let value = percent_decode_str(value).decode_utf8().map_err(|_| NoParams::NotUtf8(name.to_owned()))?;
            Ok((name.to_owned(), value.into_owned()))
        });
        decoded.collect()
    }
}

/// The names of a route's parameters.
pub(super) fn names(route: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = route;
    while let Some((_, behind)) = rest.split_once('{') {
        if let Some(escaped) = behind.strip_prefix('{') {
            rest = escaped;
            continue;
        }
        let Some((name, behind)) = behind.split_once('}') else { break };
        names.push(name.trim_start_matches('*'));
        rest = behind;
    }
    names
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;

    fn params(routes: &[&str], path: &str) -> Result<Vec<(String, String)>, NoParams> {
        let mut problems = Vec::new();
        let paths = Paths::parse(routes.iter().map(|&route| route.to_owned()).collect(), &mut problems);
        assert_eq!(problems, Vec::<String>::new());
        paths.params(path).map(|params| params.into_iter().collect())
    }

    fn id(routes: &[&str], path: &str) -> Option<String> {
        params(routes, path).ok().map(|params| params.into_iter().find(|(name, _)| name == "id").unwrap().1)
    }

    #[test]
    fn a_parameter_is_what_stands_at_its_place() {
        let routes = ["/orders/{id}", "/orders/{id}/items/{item}"];
        assert_eq!(id(&routes, "/orders/A-17").as_deref(), Some("A-17"));
        assert_eq!(params(&routes, "/orders/A/items/3").unwrap().len(), 2);
        assert_eq!(id(&["/files/{*id}"], "/files/a/b").as_deref(), Some("a/b"));
    }

    #[test]
    fn what_an_api_or_a_router_puts_before_a_route_does_not_matter() {
        for path in ["/prod/orders/17", "/shop/prod/orders/17", "/orders/orders/17", "/prod//orders/17"] {
            assert_eq!(id(&["/orders/{id}"], path).as_deref(), Some("17"), "{path}");
        }
    }

    #[test]
    fn a_route_that_begins_with_a_parameter_has_the_whole_path() {
        assert_eq!(id(&["/{id}"], "/17").as_deref(), Some("17"));
        assert_eq!(params(&["/{id}"], "/17/cancel"), Err(NoParams::NotMatched), "`cancel` is no id");
        assert_eq!(params(&["/{id}/cancel"], "/prod/17/cancel"), Err(NoParams::NotMatched));
        assert_eq!(params(&["/"], "/17/"), Err(NoParams::NotMatched));
    }

    #[test]
    fn other_paths_are_none_of_the_routes() {
        for path in
            ["", "*", "/", "/orders", "/orders/", "/orders/17/", "/orders/17/items", "/Orders/17", "/orders17", "/é"]
        {
            assert_eq!(params(&["/orders/{id}"], path), Err(NoParams::NotMatched), "{path}");
        }
    }

    #[test]
    fn a_value_that_is_encoded_is_the_one_that_it_stands_for() {
        assert_eq!(id(&["/orders/{id}"], "/orders/%31%37").as_deref(), Some("17"));
        assert_eq!(id(&["/orders/{id}"], "/orders/a%2Fb+c%20d").as_deref(), Some("a/b+c d"));
        assert_eq!(params(&["/orders/{id}"], "/orders/%FF"), Err(NoParams::NotUtf8("id".to_owned())));
    }

    #[test]
    fn names_are_those_between_single_braces() {
        assert_eq!(names("/a/{id}/x-{item}/{{no}}/{*rest}"), ["id", "item", "rest"]);
        assert_eq!(names("/health"), Vec::<&str>::new());
    }
}
