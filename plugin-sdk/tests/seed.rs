//! The plugin of the original design document, unchanged, except that `plugin! {}` replaces the function that returns a pointer.

use minitensor_plugin_sdk as minitensor_engine;

// plugin_example/src/lib.rs
use minitensor_engine::{CustomOp, CustomOpRegistry, Plugin, PluginInfo, Result, VersionInfo};
use std::sync::Arc;

pub struct ExamplePlugin {
    info: PluginInfo,
}

impl Default for ExamplePlugin {
    fn default() -> Self {
        Self::new()
    }
}

impl ExamplePlugin {
    pub fn new() -> Self {
        Self {
            info: PluginInfo {
                name: "example_rust_plugin".to_string(),
                version: VersionInfo::new(1, 0, 0),
                description: "Example Rust plugin".to_string(),
                author: "Rust Developer".to_string(),
                min_minitensor_version: VersionInfo::new(0, 1, 0),
                max_minitensor_version: None,
            },
        }
    }
}

impl Plugin for ExamplePlugin {
    fn info(&self) -> &PluginInfo {
        &self.info
    }

    fn initialize(&self, _registry: &CustomOpRegistry) -> Result<()> {
        println!("Rust plugin initialized!");
        Ok(())
    }

    fn cleanup(&self, _registry: &CustomOpRegistry) -> Result<()> {
        println!("Rust plugin cleaned up!");
        Ok(())
    }

    fn custom_operations(&self) -> Vec<Arc<dyn CustomOp>> {
        // Return your custom operations here
        vec![]
    }
}

minitensor_engine::plugin! { name: "example_rust_plugin", version: "1.0.0", plugin: ExamplePlugin::new() }

#[test]
fn it_comes_and_goes() -> Result<()> {
    let (plugin, registry) = (ExamplePlugin::new(), CustomOpRegistry::global());
    assert_eq!(
        (plugin.info().name.as_str(), plugin.info().version),
        ("example_rust_plugin", VersionInfo::new(1, 0, 0))
    );
    assert!(plugin.custom_operations().is_empty());
    plugin.initialize(&registry)?;
    plugin.cleanup(&registry)
}

/// An op that is an object is registered like an op defined with the macro.
#[test]
fn objects_are_registered_as_ops() -> Result<()> {
    use minitensor_engine::{DType, Device, GradientFunction, Shape, Tensor};

    struct Same;
    struct Passed;
    impl GradientFunction for Passed {
        fn backward(&self, grad_output: &Tensor) -> Result<Vec<Option<Tensor>>> {
            Ok(vec![Some(grad_output.clone())])
        }
    }
    impl CustomOp for Same {
        fn name(&self) -> &str {
            "seed::same"
        }
        fn validate_inputs(&self, _inputs: &[&Tensor]) -> Result<()> {
            Ok(())
        }
        fn forward(&self, inputs: &[&Tensor]) -> Result<Tensor> {
            Tensor::from_vec(inputs[0].to_vec::<f64>()?, inputs[0].shape().clone())
        }
        fn create_gradient_function(&self, _: &[&Tensor], _: &Tensor) -> Option<Arc<dyn GradientFunction>> {
            Some(Arc::new(Passed))
        }
        fn num_inputs(&self) -> usize {
            1
        }
        fn output_shape(&self, shapes: &[&Shape]) -> Result<Shape> {
            Ok(shapes[0].clone())
        }
        fn output_dtype(&self, dtypes: &[DType]) -> Result<DType> {
            Ok(dtypes[0])
        }
        fn output_device(&self, _: &[&Device]) -> Result<Device> {
            Ok(Device::Cpu)
        }
    }

    CustomOpRegistry::global().register(Arc::new(Same))?;
    let op = minitensor_engine::registry::get("seed::same")?;
    let x = Tensor::from_vec(vec![1.0, 2.0], [2])?;
    assert_eq!(op.forward(&[&x])?.to_vec::<f64>()?, [1.0, 2.0]);
    Ok(())
}
